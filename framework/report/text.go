package report

import "strings"

// FailureText returns what WriteConsole writes of one outcome that is not a pass,
// with all of its mismatches and calls, for reporters of other make.
func FailureText(outcome Outcome) string {
	var text strings.Builder
	p := &printer{out: &text, options: ConsoleOptions{Verbose: true}}
	p.failure(outcome)
	return strings.TrimRight(text.String(), "\n")
}
