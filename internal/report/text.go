package report

import (
	"strings"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// FailureText returns the text that WriteConsole writes for an outcome that is not a pass, with all
// mismatches and calls. Other reporters use it.
func FailureText(outcome Outcome) string {
	var text strings.Builder
	p := &printer{out: redact.NewWriter(&text), options: ConsoleOptions{Verbose: true}}
	p.failure(outcome)
	return strings.TrimRight(text.String(), "\n")
}

// FirstLine returns the first line of a string.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
