package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// textSource "builds" a server that is the text of its only file.
type textSource struct {
	folder string
	builds int
}

func (s *textSource) Folder(string) string { return s.folder }

func (s *textSource) Build(_ context.Context, dir string) (assets.Assets, error) {
	s.builds++
	text, err := os.ReadFile(filepath.Join(s.folder, "a.go"))
	if err == nil && strings.Contains(string(text), "{}") {
		return assets.Assets{}, assets.ErrBuild
	}
	return assets.Assets{Dir: dir}, errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "kube-apiserver"), text, 0o600))
}

// catalogue is a command that notices what its first argument, a pattern, does not find in the server. A
// server with HANG does not answer, one with DEAD does not start, and one with BUSY fails once.
const catalogue = `#!/bin/sh
for last; do case $before in --report) report=$last;; esac; before=$last; done
mkdir -p "$report"
server=$KUBEBUILDER_ASSETS/kube-apiserver
verdict() { echo '{"outcomes": [{"name": "a.b", "verdict": "pass"}, {"name": "a.c", "verdict": "'$1'"}, {"name": "a.d", "verdict": "error", "notReached": true}]}' > "$report/report.json"; }
if grep -q HANG $server; then exec sleep 100; fi
if grep -q DEAD $server; then exit 4; fi
if grep -q BUSY $server && [ ! -f BUSYFILE ]; then touch BUSYFILE; verdict fail; exit 1; fi
if grep -q UNKNOWN $server; then verdict inconclusive; exit 3; fi
if grep -q LOST $server; then exit 1; fi
grep -q 'x == 1' $server || { verdict fail; exit 1; }
verdict pass
`

func testBench(t *testing.T) (*bench, *textSource) {
	t.Helper()
	dir := t.TempDir()
	script := strings.ReplaceAll(catalogue, "BUSYFILE", filepath.Join(dir, "busy"))
	command := filepath.Join(dir, "catalogue")
	from := &textSource{folder: dir}
	if err := errors.Join(os.WriteFile(command, []byte(script), 0o700), os.WriteFile(filepath.Join(dir, "a.go"), []byte("x == 1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return &bench{
		source: from, server: filepath.Join(dir, "server"), out: io.Discard,
		judge: &judge{command: command, version: "1.36.3", data: dir, limit: 60e9, first: []string{"a.b", "a.c"}},
	}, from
}

func testMutant(before, after string) mutant {
	return mutant{File: "k8s.io/apiserver/a.go", Line: 1, Column: 1, Operator: "test", Before: before, After: after, offset: strings.Index("x == 1\n", before)}
}

// The verdict about a mutant is what the catalogue says about its server.
func TestVerdicts(t *testing.T) {
	for after, want := range map[string]string{
		"x != 1": killed, "x == 1 ": survived, "x == 1 DEAD": notStarted, "x == 1 BUSY": survived, "x == 1 UNKNOWN": killed, "x == 1 {}": invalid,
	} {
		b, _ := testBench(t)
		made, err := b.one(t.Context(), testMutant("x == 1", after))
		if err != nil || made.Verdict != want || made.Verdict == killed && !slices.Equal(made.By, []string{"a.c"}) {
			t.Errorf("%s: got %+v, %v; want %s", after, made, err, want)
		}
		if text, err := os.ReadFile(filepath.Join(b.source.Folder(""), "a.go")); string(text) != "x == 1\n" {
			t.Errorf("%s: the file is %q, %v after it", after, text, err)
		}
	}
	b, _ := testBench(t)
	if made, err := b.one(t.Context(), testMutant("x == 1", "LOST")); err == nil {
		t.Errorf("a run without a report: got %+v", made)
	}
	b.judge.limit = 3e8
	if made, err := b.one(t.Context(), testMutant("x == 1", "HANG")); err != nil || made.Verdict != timedOut {
		t.Errorf("a run that hangs: got %+v, %v", made, err)
	}
}

// A mutant that was judged is not judged again, mutants that do not compile do not count, and survivors are
// judged again if wanted.
func TestMeasureGoesOn(t *testing.T) {
	b, from := testBench(t)
	sample := []mutant{testMutant("x == 1", "{}"), testMutant("1", "1 "), testMutant("1", "2"), testMutant("1", "3")}
	file := filepath.Join(t.TempDir(), "seed.jsonl")
	for i, want := range []int{4, 1, 1, 2, 1} { // builds: the unchanged one, and those that were not judged
		if i == 2 {
			text, _ := os.ReadFile(file)
			if err := os.WriteFile(file, append(text, []byte(`{"file": "cut`)...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := openVerdicts(file, i == 3)
		if err != nil {
			t.Fatal(err)
		}
		from.builds = 0
		if err := errors.Join(b.measure(t.Context(), sample, 2, kept), kept.close()); err != nil {
			t.Fatal(err)
		}
		of := kept.of(sample, 2)
		if from.builds != want || len(of) != 2 || of[0].Verdict != survived || of[1].Verdict != killed {
			t.Errorf("run %d: %d builds, want %d; %+v", i, from.builds, want, of)
		}
	}
}

// The catalogue must pass on the unchanged server.
func TestUnchangedServer(t *testing.T) {
	b, from := testBench(t)
	if err := os.WriteFile(filepath.Join(from.folder, "a.go"), []byte("x == 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept, err := openVerdicts(filepath.Join(t.TempDir(), "seed.jsonl"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.measure(t.Context(), nil, 1, kept); err == nil || !strings.Contains(err.Error(), "does not pass on the unchanged server") {
		t.Errorf("got %v", err)
	}
}
