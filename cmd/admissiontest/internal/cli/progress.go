package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/console"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// display shows the progress of a run.
type display interface {
	engine.Progress
	// Line prints a line.
	Line(text string)
	// Close ends the display.
	Close()
}

// newDisplay returns a display of total scenarios: a bar if out is a terminal that supports cursor movement,
// otherwise lines.
func newDisplay(out io.Writer, total int, terminal bool) display {
	if raw := console.NewWriter(out).Out(); terminal && widthOf(raw) > 0 { // a bar moves the cursor
		return newBar(raw, total)
	}
	return &plain{out: out, tally: tally{total: total}}
}

// widthOf returns the width of a terminal in columns, or 0 if it is not known.
func widthOf(terminal io.Writer) int {
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

// barWidth is the width of the bar and the text beside it, in columns.
const barWidth = 100

// bar draws one progress bar on a terminal with the current stage beside it. Scenarios
// that did not pass are written above it.
type bar struct {
	pool *mpb.Progress
	bar  *mpb.Bar

	mu    sync.Mutex
	tally tally
	stage string
}

// newBar draws a bar for total scenarios on a terminal.
func newBar(terminal io.Writer, total int) *bar {
	b := &bar{tally: tally{total: total}}
	b.pool = mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(barWidth), mpb.WithAutoRefresh())
	b.bar = b.pool.AddBar(int64(total),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return b.beside() })),
	)
	return b
}

// beside returns the text to the right of the bar.
func (b *bar) beside() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := " " + b.stage
	if b.tally.failed > 0 {
		text = fmt.Sprintf(" %d failed or not judged, %s", b.tally.failed, b.stage)
	}
	return text
}

// Stage shows the stage that begins.
func (b *bar) Stage(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stage = console.Printable(text)
}

// Line writes a line above the bar.
func (b *bar) Line(text string) { _, _ = fmt.Fprintln(b.pool, console.Printable(text)) }

// Done advances the bar by one scenario.
func (b *bar) Done(outcome report.Outcome) {
	b.mu.Lock()
	text := b.tally.add(outcome)
	b.mu.Unlock()
	if text != "" {
		b.Line(text)
	}
	b.bar.Increment()
}

// Close removes the bar.
func (b *bar) Close() {
	b.bar.Abort(true)
	b.pool.Wait()
}
