package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// textSource "builds" a server that is the text of its only file. WRONG does not compile.
type textSource struct {
	dir    string
	builds int
}

const testText = "package a\n\nfunc f(x int) bool { return x == 1 }\n"

func (s *textSource) folder(string) string { return s.dir }

func (s *textSource) build(_ context.Context, to string, _ ...string) error {
	s.builds++
	text, err := os.ReadFile(filepath.Join(s.dir, "a.go"))
	var messages []string
	for _, part := range strings.Split(string(text), "\n//line ")[1:] {
		if position, _, _ := strings.Cut(part, "\n"); strings.Contains(part, "WRONG") {
			messages = append(messages, "../a/"+position+":7: it is wrong")
		}
	}
	if len(messages) > 0 || strings.Contains(string(text), "BROKEN") {
		return fmt.Errorf("go build: %s", strings.Join(messages, "\n"))
	}
	return errors.Join(err, os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, "kube-apiserver"), text, 0o600))
}

// catalogue is a command that notices what a pattern does not find in the selected function of the server. A
// server with HANG does not answer, one with DEAD does not start, one with BUSY fails once, one with LATE if
// a.b does not run too, and one with CROWD if it runs. Of one with ROAMS another scenario fails each time it runs.
const catalogue = `#!/bin/sh
for last; do case $before in --report) report=$last;; esac; before=$last; done
mkdir -p "$report"
server=$KUBEBUILDER_ASSETS
number=$(cat "$server/mutant")
function=f; if [ "$number" != 0 ]; then function=mutant${number}_f; fi
text=$(grep "^func $function(" "$server/kube-apiserver") || exit 9
verdict() { echo '{"outcomes": [{"name": "a.b", "verdict": "pass"}, {"name": "a.c", "verdict": "'$1'"}, {"name": "a.e", "verdict": "'${2:-pass}'"}, {"name": "a.d", "verdict": "error", "notReached": true}]}' > "$report/report.json"; }
echo "$*" >> RUNS
case $text in *HANG*) exec sleep 100;; *DEAD*) exit 4;; *UNKNOWN*) verdict inconclusive; exit 3;; *LOST*) exit 1;; esac
case $text in *BUSY*) if [ ! -f BUSYFILE ]; then touch BUSYFILE; verdict fail; exit 1; fi;; esac
case "$text $*" in *LATE*' a.b '*) ;; *LATE*) verdict fail; exit 1;; *CROWD*' a.b '*) verdict error; exit 5;; *ROAMS*' a.b '*) if [ -f ROAMSFILE ]; then verdict pass fail; else verdict fail; fi; touch ROAMSFILE; exit 1;; esac
case $text in *'x == 1'*) verdict pass;; *) verdict fail; exit 1;; esac
`

func testBench(t *testing.T) (*bench, *textSource) {
	t.Helper()
	dir := t.TempDir()
	script := strings.NewReplacer("BUSYFILE", filepath.Join(dir, "busy"), "ROAMSFILE", filepath.Join(dir, "roams"), "RUNS", filepath.Join(dir, "runs")).Replace(catalogue)
	command := filepath.Join(dir, "catalogue")
	from := &textSource{dir: dir}
	if err := errors.Join(os.WriteFile(command, []byte(script), 0o700), os.WriteFile(filepath.Join(dir, "a.go"), []byte(testText), 0o600)); err != nil {
		t.Fatal(err)
	}
	return &bench{
		source: from, server: filepath.Join(dir, "server"), out: io.Discard,
		judge: &judge{command: command, version: "1.36.3", data: dir, stages: [2][]string{{"a.b", "a.c"}, {"a.other"}}},
	}, from
}

func testMutant(after string) mutant {
	return mutant{File: "k8s.io/apiserver/a.go", Line: 3, Column: 28, Operator: "test", Before: "x == 1", After: after, offset: strings.Index(testText, "x == 1")}
}

func testVerdicts(t *testing.T) *verdicts {
	t.Helper()
	kept, err := openVerdicts(filepath.Join(t.TempDir(), "seed.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// measureAll judges n mutants of a sample, and returns the verdicts about those that compile.
func measureAll(t *testing.T, b *bench, kept *verdicts, sample []mutant, n int) ([]judged, error) {
	t.Helper()
	err := errors.Join(b.measure(t.Context(), sample, n, kept), kept.close())
	return kept.of(sample, n), err
}

// The verdict about a mutant is what the catalogue says about the server as which it is selected.
func TestVerdicts(t *testing.T) {
	afters := []string{"x != 1", "x == 1 ", "x == 1 /*DEAD*/", "x == 1 /*WRONG*/", "x == 1 /*BUSY*/", "x == 1 /*UNKNOWN*/", "x == 1 /*LATE*/", "x == 1 /*CROWD*/", "x == 1 /*ROAMS*/"}
	want := []string{killed, survived, notStarted, survived, killed, killed, killed, survived}
	var sample []mutant
	for _, after := range afters {
		sample = append(sample, testMutant(after))
	}
	b, _ := testBench(t)
	made, err := measureAll(t, b, testVerdicts(t), sample, len(want))
	var got []string
	for _, one := range made {
		got = append(got, one.Verdict)
		if one.Verdict == killed && !slices.Equal(one.By, []string{"a.c"}) {
			t.Errorf("%s: killed by %v", one.id(), one.By)
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	runs, err := os.ReadFile(filepath.Join(b.source.folder(""), "runs"))
	if text := string(runs); err != nil || !strings.Contains(text, "--fail-fast a.b a.c\n") || strings.Count(text, "a.b a.c\n") != len(want)+5 {
		t.Errorf("the runs are\n%s\nwant all of the first stage once for each, for the unchanged server, again for the server that did not start, and again after the three alarms that a second run of a.c did not confirm", text)
	}
}

// What is not about a mutant is an error.
func TestMeasureFails(t *testing.T) {
	for after, want := range map[string]string{"x == 1 /*LOST*/": "exit status 1", "x == 1 /*BROKEN*/": "go build"} {
		t.Run(after, func(t *testing.T) {
			b, _ := testBench(t)
			if _, err := measureAll(t, b, testVerdicts(t), []mutant{testMutant(after)}, 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// A run that takes too long is a kill.
func TestTimeOut(t *testing.T) {
	b, _ := testBench(t)
	b.judge.limits = [2]time.Duration{300 * time.Millisecond, 300 * time.Millisecond}
	sample := []mutant{testMutant("x == 1 /*HANG*/")}
	if err := b.write(sample, []int{1}, map[string][]byte{}); err != nil {
		t.Fatal(err)
	}
	if err := b.source.build(t.Context(), b.server); err != nil {
		t.Fatal(err)
	}
	if made, err := b.one(t.Context(), b.server, 1, sample[0]); err != nil || made.Verdict != timedOut {
		t.Errorf("got %+v, %v", made, err)
	}
}

// A mutant that was judged is not judged again, mutants that do not compile do not count, and survivors are
// judged again if wanted.
func TestMeasureGoesOn(t *testing.T) {
	sample := []mutant{testMutant("x == 1 /*WRONG*/"), testMutant("x == 1 "), testMutant("x == 2"), testMutant("x == 3")}
	file := filepath.Join(t.TempDir(), "seed.jsonl")
	for i, want := range []int{2, 0, 0, 1, 0} { // builds
		if i == 2 {
			text, _ := os.ReadFile(file)
			if err := os.WriteFile(file, append(text, []byte(`{"file": "cut`)...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := openVerdicts(file, func(string) bool { return i == 3 })
		if err != nil {
			t.Fatal(err)
		}
		b, from := testBench(t)
		of, err := measureAll(t, b, kept, sample, 2)
		if err != nil || from.builds != want || len(of) != 2 || of[0].Verdict != survived || of[1].Verdict != killed {
			t.Errorf("run %d: %v, %d builds, want %d; %+v", i, err, from.builds, want, of)
		}
		if text, err := os.ReadFile(filepath.Join(from.dir, "a.go")); (i == 0 || i == 3) != strings.Contains(string(text), "mutant2_f") {
			t.Errorf("run %d: the file is %s, %v", i, text, err)
		}
	}
}

// The catalogue must pass on the unchanged server.
func TestUnchangedServer(t *testing.T) {
	b, from := testBench(t)
	if err := os.WriteFile(filepath.Join(from.dir, "a.go"), []byte(strings.ReplaceAll(testText, "1", "2")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := measureAll(t, b, testVerdicts(t), []mutant{testMutant("x == 2")}, 1); err == nil || !strings.Contains(err.Error(), "does not pass on the unchanged server") {
		t.Errorf("got %v", err)
	}
}

// The order of a sample does not depend on what else is in it, and differs by seed.
func TestShuffle(t *testing.T) {
	var all []mutant
	for i := range 50 {
		all = append(all, testMutant(strconv.Itoa(i)))
	}
	order := func(seed uint64, without int) []string {
		some := slices.Delete(slices.Clone(all), without, without+1)
		shuffle(some, seed)
		var ids []string
		for _, m := range some {
			if m.After != "7" && m.After != "9" {
				ids = append(ids, m.id())
			}
		}
		return ids
	}
	if !slices.Equal(order(1, 7), order(1, 9)) {
		t.Error("another mutant changes the order")
	}
	if slices.Equal(order(1, 7), order(2, 7)) || slices.IsSorted(order(1, 7)) {
		t.Error("the order does not depend on the seed")
	}
}
