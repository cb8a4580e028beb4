// Package files finds the files of scenarios, on the disk or in an fs.FS, and reads them and the files
// that they refer to.
//
// A file is read up to a size, and only if it is a regular one. A file that a scenario refers to is in
// the tree of the scenario: no path and no symbolic link leads out of it.
package files
