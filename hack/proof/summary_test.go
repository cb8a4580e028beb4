package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

func testSummary() summary {
	at := func(file, after, verdict string) judged {
		return judged{mutant: mutant{File: file, Line: 3, Column: 2, Operator: "test", Before: "a |\n\tb", After: after}, Verdict: verdict}
	}
	s := summary{version: "1.36.3", seed: 7, judged: []judged{
		at(admission+"plugin/webhook/a.go", "1", killed), at(admission+"plugin/webhook/a.go", "2", survived), at(admission+"chain.go", "3", timedOut),
		at(handlers+"create.go", "4", survived), at(admission+"errors.go", "5", notStarted),
	}}
	s.reasons = map[string]string{s.judged[3].id(): "It is a cache."}
	var one scenario.Scenario
	one.Spec.Source, one.Spec.Behaviours = []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/x/webhook/a.go"}, []string{"B-2", "B-1"}
	s.scenarios = []scenario.Scenario{one, one}
	return s
}

// The score is the share of what is not equivalent; survivors are listed with the behaviours of the file.
func TestSummary(t *testing.T) {
	s := testSummary()
	for part, want := range map[string]string{"": "75.0 %", "webhook plugins": "50.0 %", "handlers of requests": "-", "admission core": "100.0 %"} {
		if got := s.score(part).String(); got != want {
			t.Errorf("%s: got %s, want %s", part, got, want)
		}
	}
	var out bytes.Buffer
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 mutants of Kubernetes 1.36.3, seed 7: 3 killed, 1 equivalent: 75.0 %", "survived  " + admission + "plugin/webhook/a.go:3:2 test \"2\"", "- a | b\n  + 2\n  behaviours B-1 B-2\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "create.go") {
		t.Errorf("an equivalent mutant is among the survivors:\n%s", out.String())
	}
	name := filepath.Join(t.TempDir(), "mutation.md")
	elsewhere := s.judged[1]
	elsewhere.Line = 9
	s.others = map[uint64][]judged{8: {s.judged[0], s.judged[1], elsewhere}} // a survivor of two samples is listed once
	if err := s.write(name, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(name)
	for _, want := range []string{"2026-01-02", "| webhook plugins | 2 | 1 | 0 | 50.0 % |", "| 8 | webhook plugins | 3 | 1 | 0 | 33.3 % |", "a.go:9 | test", "a.go:3 | test | `2` | `a \\| b` | B-1, B-2 |", "create.go:3 | test | `4` | `a \\| b` | It is a cache. |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), "a.go:3 | test"); n != 1 {
		t.Errorf("a survivor is listed %d times in\n%s", n, text)
	}
}

// The verdicts of other seeds are those in the files beside, of mutants that compile.
func TestOtherSeeds(t *testing.T) {
	folder := t.TempDir()
	s := testSummary()
	s.judged[0].Verdict = invalid
	for _, name := range []string{"seed-7.jsonl", "seed-8.jsonl", "seed-x.jsonl"} {
		v, err := openVerdicts(filepath.Join(folder, name), func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range s.judged[:3] {
			if err := v.add(one); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
	}
	others, err := ofOtherSeeds(folder, 7)
	if err != nil || len(others) != 1 || len(others[8]) != 2 {
		t.Errorf("got %v, %v; want two mutants of seed 8", others, err)
	}
}
