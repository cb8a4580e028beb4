//go:build !unix

package userfile

import "os"

func problem(os.FileInfo) string { return "" }
