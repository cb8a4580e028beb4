// Package cli implements the command admissiontest: its subcommands, one file each.
//
// # Promise
//
// [Main] returns one of the exit codes of exit.go, which are frozen. Results go to standard
// output. Progress, notes and errors go to standard error; each error is on its own
// line and begins with "admissiontest:". With -o json standard output is exactly one
// JSON document.
//
// An interrupted run removes what it created and still writes its report.
//
// # Not promised
//
// Texts for people, such as errors and progress, can change.
package cli
