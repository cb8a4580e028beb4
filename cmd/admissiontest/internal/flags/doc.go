// Package flags has the flags that several commands share, or that say what a run does: where it runs,
// which scenarios, and what is installed for them. Each type adds its flags to a command, and checks them.
package flags
