// Package cli is the command admissiontest: its commands, one file each, their
// flags, and what the process ends with.
//
// # Promise
//
// [Main] ends with one of the Exit codes, which are frozen. What a command is
// asked for goes to standard output; progress, notes and errors go to standard
// error, each error on a line of its own that begins with "admissiontest:". With
// -o json standard output holds one JSON document and nothing else.
//
// A run that is interrupted removes what it created and still writes its report.
//
// # Not promised
//
// The texts for people can change, those of errors and progress among them.
package cli
