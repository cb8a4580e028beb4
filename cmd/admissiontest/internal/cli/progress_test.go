package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
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

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 40, func(report.Outcome) {})
	p.Stage("starting")
	p.Stage("starting")
	p.Line("compiling")
	for _, outcome := range outcomes() {
		p.Done(outcome)
	}
	golden.Compare(t, filepath.Join("testdata", "progress.golden"), out.String())
}

// A cause of many outcomes has one line.
func TestProgressOfOneCause(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 3, func(report.Outcome) {})
	for _, name := range []string{"a", "b", "c"} {
		p.Done(report.Outcome{Name: name, Level: framework.Must, Verdict: framework.Inconclusive, Reason: "plugin is off; " + name, Cause: "plugin is off"})
	}
	if got, want := out.String(), "inconclusive  a  MUST: plugin is off; a\n3 of 3 done, 3 failed or not judged\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
