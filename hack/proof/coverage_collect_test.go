//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// collected runs collect with a shell script as the command.
func collected(t *testing.T, script string) (data string, err error) {
	t.Helper()
	dir := t.TempDir()
	command := filepath.Join(dir, "command")
	if err := os.WriteFile(command, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	data = filepath.Join(dir, "data")
	var out strings.Builder
	err = collector{command: command, version: "1.36.3", data: data, out: &out}.collect(t.Context(), "/assets")
	return data, err
}

func TestCollectGivesTheCommandItsServers(t *testing.T) {
	data, _ := collected(t, `echo "$* $KUBEBUILDER_ASSETS" >"$GOCOVERDIR/said"`)
	said, err := os.ReadFile(filepath.Join(data, "servers", "said"))
	if want := "run --k8s-version 1.36.3 /assets\n"; err != nil || string(said) != want {
		t.Errorf("the command got %q, %v; want %q", said, err, want)
	}
}

// A run without data is no measurement.
func TestCollectWithoutData(t *testing.T) {
	if _, err := collected(t, "exit 0"); err == nil || !strings.Contains(err.Error(), "no server wrote") {
		t.Errorf("collect = %v; want an error about the data", err)
	}
	if _, err := collected(t, "exit 1"); err == nil || !strings.Contains(err.Error(), "run the catalogue: exit status 1") {
		t.Errorf("collect = %v; want also the exit status", err)
	}
}

func TestCollectRemovesOldData(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "servers", "covcounters.old")
	if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := collector{command: "true", data: dir, out: &out}.collect(t.Context(), "/assets")
	if err == nil || !strings.Contains(err.Error(), "no server wrote") {
		t.Errorf("collect = %v; want an error, because what is there is old", err)
	}
}
