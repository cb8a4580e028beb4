// Package userfile reads files that a user names on the command line or in the environment.
package userfile

import (
	"fmt"
	"io"
	"os"
)

// MaxBytes is the size of the largest file that Read reads.
const MaxBytes = 8 << 20

// Read returns the content of a regular file of at most MaxBytes. It does not wait for the writer of a named
// pipe, and reads no device. The error names the file.
func Read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	opened, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer opened.Close()                                           //nolint:errcheck // it is only read
	content, err := io.ReadAll(io.LimitReader(opened, MaxBytes+1)) // it may have grown
	if err == nil && len(content) > MaxBytes {
		err = fmt.Errorf("%s has more than %d bytes; want at most %d", name, MaxBytes, MaxBytes)
	}
	return content, err
}
