package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, args := range map[string][]string{
		"":                {token, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
		"got 1 arguments": {token},
		"read token":      {token + "x", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
		"listen":          {token, "127.0.0.1:none", "127.0.0.1:0", "127.0.0.1:0"},
	} {
		t.Run(want, func(t *testing.T) {
			err := run(ended, args)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
