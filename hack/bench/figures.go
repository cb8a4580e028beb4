package main

import (
	"fmt"
	"io"
)

// figures prints measurements and records which exceed their limit.
type figures struct {
	out      io.Writer
	exceeded []string
}

func (f *figures) heading(text string) { _, _ = fmt.Fprintf(f.out, "\n%s\n", text) }

// figure prints one measurement without a limit.
func (f *figures) figure(name string, value float64, unit string) {
	_, _ = fmt.Fprintf(f.out, "  %-46s %9.3f %s\n", name, value, unit)
}

// count prints a number.
func (f *figures) count(name string, value int) {
	_, _ = fmt.Fprintf(f.out, "  %-46s %9d\n", name, value)
}

// atMost prints one measurement with its upper limit.
func (f *figures) atMost(name string, value, limit float64, unit string) {
	f.judged(name, fmt.Sprintf("%9.3f %s, limit %g", value, unit, limit), value <= limit)
}

// atLeast prints one measurement with the least value that it should have.
func (f *figures) atLeast(name string, value, limit float64, unit string) {
	f.judged(name, fmt.Sprintf("%9.3f %s, want %g", value, unit, limit), value >= limit)
}

func (f *figures) judged(name, text string, within bool) {
	verdict := "ok"
	if !within {
		verdict = "EXCEEDED"
		f.exceeded = append(f.exceeded, name)
	}
	_, _ = fmt.Fprintf(f.out, "  %-46s %s: %s\n", name, text, verdict)
}

// note prints a remark.
func (f *figures) note(format string, arguments ...any) {
	_, _ = fmt.Fprintf(f.out, "  %s\n", fmt.Sprintf(format, arguments...))
}

// verdict prints a summary. If strict, it returns an error instead if limits are exceeded.
func (f *figures) verdict(strict bool) error {
	switch {
	case len(f.exceeded) == 0:
		f.heading("no figure exceeds its limit")
	case strict:
		return fmt.Errorf("%d figures exceed their limits: %q", len(f.exceeded), f.exceeded)
	default:
		f.heading(fmt.Sprintf("%d figures exceed their limits: %q", len(f.exceeded), f.exceeded))
	}
	return nil
}
