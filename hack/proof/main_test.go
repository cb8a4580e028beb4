package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

// An argument that is no flag is an error, and not ignored.
func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"": "want coverage or mutation", "other -n 3": "want coverage or mutation", "mutation -n 3 more": `unexpected argument "more"`, "coverage more": `unexpected argument "more"`,
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
	}
	if err := run(t.Context(), []string{"coverage", "-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("with -help: got %v", err)
	}
}
