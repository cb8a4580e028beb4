// Package progress shows the progress of a run: a bar on a terminal, lines otherwise.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/console"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Display shows the progress of a run.
type Display interface {
	engine.Progress
	// Line prints a line.
	Line(text string)
	// Close ends the display.
	Close()
}

// New returns a Display of total scenarios: a bar if out is a terminal that supports cursor movement,
// otherwise lines.
func New(out io.Writer, total int, terminal bool) Display {
	if raw := console.NewWriter(out).Out(); terminal && size(raw) > 0 { // a bar moves the cursor
		return newBar(raw, total)
	}
	return &plain{out: out, tally: tally{total: total}}
}

// size returns the width of a terminal in columns, or 0 if it is not known.
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

// Close does nothing.
func (*plain) Close() {}

func (p *plain) line(text string) { _, _ = fmt.Fprintln(p.out, text) }
