// Package userfile reads files that a user names on the command line or in the environment, says which
// other files these may lead to, and checks before a file is executed that no other user could have written it.
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
func Read(name string) ([]byte, error) { return ReadAtMost(name, MaxBytes) }

// ReadAtMost is Read with another limit.
func ReadAtMost(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes; want at most %d", name, info.Size(), most)
	}
	opened, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer opened.Close()                                       //nolint:errcheck // it is only read
	content, err := io.ReadAll(io.LimitReader(opened, most+1)) // it may have grown
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes; want at most %d", name, most, most)
	}
	return content, err
}
