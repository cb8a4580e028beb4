package main

import (
	"fmt"
	"io"
)

// figures prints measurements, and remembers which were beyond their limit.
type figures struct {
	out    io.Writer
	beyond []string
}

func (f *figures) heading(text string) { _, _ = fmt.Fprintf(f.out, "\n%s\n", text) }

// figure prints one measurement without a limit.
func (f *figures) figure(name string, value float64, unit string) {
	_, _ = fmt.Fprintf(f.out, "  %-46s %9.3f %s\n", name, value, unit)
}

// count prints a number of things.
func (f *figures) count(name string, value int) {
	_, _ = fmt.Fprintf(f.out, "  %-46s %9d\n", name, value)
}

// atMost prints one measurement with its upper limit.
func (f *figures) atMost(name string, value, limit float64, unit string) {
	f.judged(name, fmt.Sprintf("%9.3f %s, limit %g", value, unit, limit), value <= limit)
}

// atLeast prints one measurement with its lower limit.
func (f *figures) atLeast(name string, value, limit float64, unit string) {
	f.judged(name, fmt.Sprintf("%9.3f %s, want %g", value, unit, limit), value >= limit)
}

func (f *figures) judged(name, text string, within bool) {
	word := "ok"
	if !within {
		word = "BEYOND"
		f.beyond = append(f.beyond, name)
	}
	_, _ = fmt.Fprintf(f.out, "  %-46s %s: %s\n", name, text, word)
}

// note prints a remark.
func (f *figures) note(format string, arguments ...any) {
	_, _ = fmt.Fprintf(f.out, "  %s\n", fmt.Sprintf(format, arguments...))
}

// verdict ends the measurements. It is an error only when strict.
func (f *figures) verdict(strict bool) error {
	switch {
	case len(f.beyond) == 0:
		f.heading("all figures within their limits")
	case strict:
		return fmt.Errorf("%d figures beyond their limits: %q", len(f.beyond), f.beyond)
	default:
		f.heading(fmt.Sprintf("%d figures beyond their limits: %q", len(f.beyond), f.beyond))
	}
	return nil
}
