package progress

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/admissiontest/admissiontest/internal/console"
	"github.com/admissiontest/admissiontest/internal/report"
)

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
