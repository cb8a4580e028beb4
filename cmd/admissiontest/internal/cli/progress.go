package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// progress prints lines about a run.
type progress struct {
	out io.Writer
	// total is the number of scenarios.
	total int
	// decided is called with each outcome.
	decided func(report.Outcome)

	mu           sync.Mutex
	done, failed int
	stage        string
	// printed has the causes that had a line.
	printed map[string]bool
}

// newProgress returns the progress of a run of total scenarios.
func newProgress(out io.Writer, total int, decided func(report.Outcome)) *progress {
	return &progress{out: out, total: total, decided: decided, printed: map[string]bool{}}
}

// Stage prints the stage that begins.
func (p *progress) Stage(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != p.stage {
		p.stage = text
		p.line(text)
	}
}

// Line prints a line.
func (p *progress) Line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(text)
}

// Done prints an outcome that is not a pass, and the count after each tenth. A cause has one line. Scenarios that were
// not reached have no line: the report summarizes them.
func (p *progress) Done(outcome report.Outcome) {
	p.decided(outcome)
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.tenth()
	p.done++
	good := outcome.Verdict == framework.Pass || outcome.Verdict == framework.Unsupported || outcome.Verdict == framework.Skipped
	if !good && !outcome.NotReached {
		p.failed++
		key, _ := outcome.SameCause()
		if key == "" || !p.printed[key] {
			p.line(strings.ReplaceAll(fmt.Sprintf("%s  %s  %s: %s", outcome.Verdict, outcome.Name, outcome.Level, outcome.Reason), "\n", " "))
		}
		p.printed[key] = true
	}
	if p.tenth() > before && !outcome.NotReached {
		p.line(fmt.Sprintf("%d of %d done, %d failed or not judged", p.done, p.total, p.failed))
	}
}

// few is a number of scenarios. If there are fewer, only the end of a run is reported.
const few = 20

// tenth returns how many tenths of the scenarios are done.
func (p *progress) tenth() int {
	if p.total < few && p.done < p.total {
		return 0
	}
	return 10 * p.done / max(p.total, 1)
}

func (p *progress) line(text string) { _, _ = fmt.Fprintln(p.out, text) }
