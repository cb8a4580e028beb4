package main

import (
	"path/filepath"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// folders returns the control-plane binaries, and a path at which no user can make a folder.
func folders(t *testing.T) (found binaries.Assets, impossible string) {
	t.Helper()
	found, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	return found, filepath.Join(file(t, "file", ""), "none")
}
