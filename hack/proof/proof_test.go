package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// A statement counts once, whatever the number of servers that ran it, and only code for admission counts.
func TestCoverageText(t *testing.T) {
	const webhook = "k8s.io/apiserver@v0.37.2/pkg/admission/plugin/webhook/"
	profile := filepath.Join(t.TempDir(), "profile.txt")
	lines := []string{
		"mode: set",
		webhook + "a.go:1.2,3.4 5 0", webhook + "a.go:1.2,3.4 5 1", webhook + "a.go:4.2,5.4 2 0",
		webhook + "b/b.go:1.2,3.4 2 1", webhook + "testing/c.go:1.2,3.4 100 1", webhook + "zz_generated.d.go:1.2,3.4 100 1",
		"k8s.io/apiserver@v0.37.2/pkg/endpoints/handlers/watch.go:1.2,3.4 100 1",
		"k8s.io/apiserver@v0.37.2/pkg/endpoints/handlers/patch.go:1.2,3.4 1 0",
	}
	if err := os.WriteFile(profile, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks, err := readProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	got := string(coverageText(blocks, "1.37.2"))
	for _, want := range []string{
		"kube-apiserver 1.37.2 ran", "| webhook plugins | 9 | 2 | 77.7 % |", "| handlers of requests | 1 | 1 | 0.0 % |", "| quota | 0 | 0 | - |", "| all | 10 | 3 | 70.0 % |",
		"| k8s.io/apiserver/pkg/admission/plugin/webhook | 7 | 2 | 71.4 % |", "| k8s.io/apiserver/pkg/admission/plugin/webhook/b | 2 | 0 | 100.0 % |",
	} {
		if !strings.Contains(got, "\n"+want+"\n") && !strings.Contains(got, want+" ") {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// The documents in the repository are of this program, and of the verdicts in the repository.
func TestDocuments(t *testing.T) {
	verdicts, err := readVerdicts("verdicts")
	if err != nil {
		t.Fatal(err)
	}
	mutation, err := os.ReadFile(filepath.Join("..", "..", mutationDocument))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(mutationText(verdicts)), string(mutation)); diff != "" {
		t.Errorf("docs/mutation.md (-want +got):\n%s", diff)
	}
	coverage, err := os.ReadFile(filepath.Join("..", "..", coverageDocument))
	if err != nil {
		t.Fatal(err)
	}
	rest := string(coverage)
	for _, part := range parts() {
		var found bool
		if _, rest, found = strings.Cut(rest, "\n| "+part[0]+" | "); !found {
			t.Errorf("docs/coverage.md lacks %s at its place: run \"make coverage\"", part[0])
		}
	}
}

// What killed a mutant is named; a survivor without a reason is listed, and one with a reason does not count.
func TestMutationText(t *testing.T) {
	folder := t.TempDir()
	for i, one := range []verdict{{By: []string{"a.b"}}, {}, {Reason: "it is a cache"}, {By: []string{"the time limit"}}} {
		one.mutant = mutant{File: "k8s.io/apiserver/pkg/admission/a.go", Line: i + 1, Change: "test", Code: "a || b"}
		one.Seed, one.Kubernetes = 7, "1.37.2"
		if err := one.append(folder); err != nil {
			t.Fatal(err)
		}
	}
	verdicts, err := readVerdicts(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := string(mutationText(verdicts))
	const place = "\n| k8s.io/apiserver/pkg/admission/a.go:"
	for _, want := range []string{"\n| seed  7, Kubernetes 1.37.2 | 4 | 2 | 1 | 66.6 % |\n", "\n| admission core | 4 | 2 | 1 | 66.6 % |\n", place + "2 | `test` | `a \\|\\| b` |\n", place + "3 | `test` | `a \\|\\| b` | it is a cache |\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("want %q once in\n%s", want, got)
		}
	}
	if strings.Count(got, place) != 2 {
		t.Errorf("want two survivors in\n%s", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "seed-8.jsonl"), []byte(`{"file": "cut`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readVerdicts(folder); err == nil || !strings.Contains(err.Error(), "seed-8.jsonl") {
		t.Errorf("a line that is cut: got %v", err)
	}
}

// catalogue is a command whose run ends as the number of the mutant says.
const catalogue = `#!/bin/sh
number=$(cat "$KUBEBUILDER_ASSETS/mutant")
report() { echo '{"outcomes": [{"name": "a.b", "verdict": "pass"}, {"name": "a.c", "verdict": "'$1'"}, {"name": "a.d", "verdict": "error", "notReached": true}]}'; }
echo "$number $*" >> "$(dirname "$0")/runs"
once() { if [ -f "$KUBEBUILDER_ASSETS/once" ]; then report pass; exit 0; fi; touch "$KUBEBUILDER_ASSETS/once"; }
case $number in
0) report pass;; 1) report fail; exit 1;; 2) report inconclusive; exit 3;; 3) exit 4;; 4) exec sleep 100;;
5) once; report fail; exit 1;; 6) once; exit 4;; 7) echo oops >&2; exit 2;;
esac
`

// A mutant is killed if two runs in turn do not pass. What is not about a mutant is an error.
func TestJudge(t *testing.T) {
	folder := t.TempDir()
	j := judge{command: filepath.Join(folder, "catalogue"), version: "1.37.2", assets: filepath.Join(folder, "server"), limit: 5 * time.Second}
	if err := os.Mkdir(j.assets, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(j.command, []byte(catalogue), 0o700); err != nil {
		t.Fatal(err)
	}
	want := [][]string{nil, {"a.c"}, {"a.c"}, {"the start of the API server"}, {"the time limit"}, nil, nil}
	for number, want := range want {
		if number == 4 {
			j.limit = 300 * time.Millisecond
		}
		got, err := j.twice(t.Context(), number)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("mutant %d: got %q, %v; want %q", number, got, err, want)
		}
		j.limit = 5 * time.Second
	}
	if _, err := j.twice(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Errorf("a command that fails: got %v", err)
	}
	if left, err := filepath.Glob(j.assets + "-*"); err != nil || len(left) > 0 {
		t.Errorf("copies of the server are left: %q, %v", left, err)
	}
	runs, err := os.ReadFile(filepath.Join(folder, "runs"))
	const options = " run --k8s-version 1.37.2 --strict --patience 12s -o json "
	if want := "0" + options + "--fail-fast\n1" + options + "--fail-fast\n1" + options + "a.c\n"; err != nil || !strings.HasPrefix(string(runs), want) {
		t.Errorf("the runs begin %q, %v; want %q", runs, err, want)
	}
}
