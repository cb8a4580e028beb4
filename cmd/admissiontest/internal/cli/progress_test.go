package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

// outcomes returns 40 outcomes: one failed and one was not reached.
func outcomes() []report.Outcome {
	var all []report.Outcome
	for i := range 40 {
		one := report.Outcome{Name: fmt.Sprintf("mine.s%02d", i), Level: framework.Must, Verdict: framework.Pass}
		switch i {
		case 7:
			one.Verdict, one.Reason = framework.Fail, "step 1:\nwrong"
		case 39:
			one.Verdict, one.Reason, one.NotReached = framework.Errored, "not reached: gone", true
		}
		all = append(all, one)
	}
	return all
}

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	p := newDisplay(&out, 40, false)
	p.Stage("starting")
	p.Stage("starting")
	p.Line("compiling")
	for _, outcome := range outcomes() {
		p.Done(outcome)
	}
	p.Close()
	golden.Compare(t, filepath.Join("testdata", "progress.golden"), out.String())
}

// A cause of many outcomes has one line.
func TestProgressOfOneCause(t *testing.T) {
	var out bytes.Buffer
	p := newDisplay(&out, 3, false)
	for _, name := range []string{"a", "b", "c"} {
		p.Done(report.Outcome{Name: name, Level: framework.Must, Verdict: framework.Inconclusive, Reason: "plugin is off; " + name, Cause: "plugin is off"})
	}
	if got, want := out.String(), "inconclusive  a  MUST: plugin is off; a\n3 of 3 done, 3 failed or not judged\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out, 40)
	b.Stage("running 40 scenarios")
	b.Line("compiling \x1b]0;title\a")
	var group sync.WaitGroup
	for _, outcome := range outcomes() {
		group.Go(func() { b.Done(outcome) })
	}
	group.Wait()
	if beside := b.beside(); beside != " 1 failed or not judged, running 40 scenarios" {
		t.Errorf("beside the bar: %q", beside)
	}
	b.Close()
	for _, part := range []string{"compiling \ufffd]0;title\ufffd\n", "fail  mine.s07  MUST: step 1: wrong\n"} {
		if strings.Count(out.String(), part) != 1 {
			t.Errorf("want %q above the bar once:\n%q", part, out.String())
		}
	}
	if strings.Contains(out.String(), "mine.s39") {
		t.Errorf("got a line for a scenario that was not reached:\n%q", out.String())
	}
}
