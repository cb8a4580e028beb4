// Package flags has the flags that several commands share, and the flags that configure a run:
// where it runs, which scenarios it runs, and what it installs for them. Each type adds its flags
// to a command, and checks their values.
package flags
