package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// display shows the progress of a run.
type display interface {
	engine.Progress
	// Line prints a line.
	Line(text string)
}

// newDisplay returns a display of total scenarios: lines, for logs and for people.
func newDisplay(out io.Writer, total int) display {
	return &plain{out: out, tally: tally{total: total}}
}

// tally counts outcomes.
type tally struct {
	total, done, failed int
	// printed has the causes that had a line.
	printed map[string]bool
}

// add counts an outcome. It returns a line to print at once, or "" if there is none. A cause has one line.
// Scenarios that were not reached have no line: the report summarizes them.
func (t *tally) add(outcome report.Outcome) string {
	t.done++
	switch outcome.Verdict {
	case framework.Pass, framework.Unsupported, framework.Skipped:
		return ""
	}
	if outcome.NotReached {
		return ""
	}
	t.failed++
	if key, _ := outcome.SameCause(); key != "" {
		if t.printed[key] {
			return ""
		}
		if t.printed == nil {
			t.printed = map[string]bool{}
		}
		t.printed[key] = true
	}
	return strings.ReplaceAll(fmt.Sprintf("%s  %s  %s: %s", outcome.Verdict, outcome.Name, outcome.Level, outcome.Reason), "\n", " ")
}

// few is a number of scenarios. If there are fewer, only the end of a run is reported.
const few = 20

// tenth returns how many tenths of the scenarios are done.
func (t *tally) tenth() int {
	if t.total < few && t.done < t.total {
		return 0
	}
	return 10 * t.done / max(t.total, 1)
}

// plain prints lines, for logs.
type plain struct {
	out io.Writer

	mu    sync.Mutex
	tally tally
	stage string
}

// Stage prints the stage that begins.
func (p *plain) Stage(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != p.stage {
		p.stage = text
		p.line(text)
	}
}

// Line prints a line.
func (p *plain) Line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(text)
}

// Done prints an outcome that is not a pass, and the count after each tenth.
func (p *plain) Done(outcome report.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.tally.tenth()
	if text := p.tally.add(outcome); text != "" {
		p.line(text)
	}
	if p.tally.tenth() > before && !outcome.NotReached {
		p.line(fmt.Sprintf("%d of %d done, %d failed or not judged", p.tally.done, p.tally.total, p.tally.failed))
	}
}

func (p *plain) line(text string) { _, _ = fmt.Fprintln(p.out, text) }
