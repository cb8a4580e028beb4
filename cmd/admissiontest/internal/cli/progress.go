package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// progress shows how far a run is, on standard error.
type progress interface {
	engine.Progress
	// Line tells of one thing.
	Line(text string)
	// Close ends the display. What follows is written below it.
	Close()
}

// progress returns the display that fits standard error, for so many scenarios.
func (a *app) progress(total int) progress {
	if a.terminal(a.Stderr) && size(a.Stderr) > 0 {
		return newBar(a.Stderr, total)
	}
	return &plain{out: a.Stderr, tally: tally{total: total}}
}

// size returns the width of a terminal; 0 where it does not say, and a bar has no
// place to be.
func size(terminal io.Writer) int {
	file, ok := terminal.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd())) //nolint:gosec // a file descriptor is small
	if err != nil {
		return 0
	}
	return width
}

// tally counts outcomes.
type tally struct{ total, done, failed int }

// add counts one and returns a line where it is worth telling at once. What was
// never reached is told by the report, all together.
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
	return strings.ReplaceAll(fmt.Sprintf("%s  %s  %s: %s", outcome.Verdict, outcome.Name, outcome.Level, outcome.Reason), "\n", " ")
}

// few is how many scenarios are over before anybody wonders how far they are.
const few = 20

// tenth returns how many tenths are done; of a few scenarios only the end counts.
func (t *tally) tenth() int {
	if t.total < few && t.done < t.total {
		return 0
	}
	return 10 * t.done / max(t.total, 1)
}

// plain writes lines: for a log.
type plain struct {
	out io.Writer

	mu    sync.Mutex
	tally tally
	stage string
}

// Stage tells what begins.
func (p *plain) Stage(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != p.stage {
		p.stage = text
		p.line(text)
	}
}

// Line tells of one thing.
func (p *plain) Line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(text)
}

// Done tells of what did not pass, and of each tenth.
func (p *plain) Done(outcome report.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.tally.tenth()
	if text := p.tally.add(outcome); text != "" {
		p.line(text)
	}
	if p.tally.tenth() > before && !outcome.NotReached {
		p.line(fmt.Sprintf("%d of %d done, %d not as required", p.tally.done, p.tally.total, p.tally.failed))
	}
}

// Close does nothing.
func (*plain) Close() {}

func (p *plain) line(text string) { _, _ = fmt.Fprintln(p.out, text) }
