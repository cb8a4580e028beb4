package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/console"
)

// annotation is one annotation of GitHub Actions.
type annotation struct {
	// kind is error, warning or notice.
	kind    string
	outcome Outcome
}

// WriteAnnotations writes a command of GitHub Actions for each outcome that people should look at, which
// GitHub shows at the line of the scenario. Place returns the path of a scenario's file in the
// repository, or "" if it is not in the repository.
//
// Text of servers and scenarios is escaped, so that it cannot end a command or begin another one. Source:
// https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
func WriteAnnotations(w io.Writer, r Report, fileOf func(Outcome) string) error {
	var text strings.Builder
	for _, one := range annotations(r.Ordered()) {
		text.WriteString("::" + one.kind + " ")
		if file := fileOf(one.outcome); file != "" {
			text.WriteString("file=" + escapeProperty(file) + ",")
			if line := one.outcome.line(); line > 0 {
				fmt.Fprintf(&text, "line=%d,", line)
			}
		}
		title := fmt.Sprintf("%s %s %s", one.outcome.Verdict, one.outcome.Name, one.outcome.Level)
		text.WriteString("title=" + escapeProperty(title) + "::" + escapeData(shortFailure(one.outcome)) + "\n")
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write annotations: %w", err)
	}
	return nil
}

// shortFailure is FailureText with only the first call and mismatches.
func shortFailure(outcome Outcome) string {
	var text strings.Builder
	p := &printer{out: console.NewWriter(&text)}
	p.failure(outcome)
	return strings.TrimRight(text.String(), "\n")
}

// annotations returns the annotations of a report, the worst kind first: GitHub shows only the
// first ones of a step.
func annotations(r Report) []annotation {
	var all []annotation
	for _, kind := range []string{"error", "warning", "notice"} {
		for _, outcome := range r.Outcomes {
			if r.annotate(outcome) == kind {
				all = append(all, annotation{kind, outcome})
			}
		}
	}
	return all
}

// annotate returns the kind of annotation for an outcome: "error" if the outcome makes the run
// fail, otherwise "warning", "notice" or "" for none.
func (r Report) annotate(o Outcome) string {
	switch {
	case o.KnownFailing != "", o.NotReached, o.Verdict == framework.Pass, o.Verdict == framework.Skipped:
		return ""
	case o.Verdict == framework.Unsupported && !r.FailOnUnsupported:
		return ""
	case o.Verdict == framework.Unsupported, o.Mistake:
		return "error"
	case o.Level == framework.May:
		return "notice"
	case o.Level == framework.Should && !r.Strict:
		return "warning"
	default:
		return "error"
	}
}

// escapeData escapes the message of a command.
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", "##[", "## [").Replace(printable(text))
}

// escapeProperty escapes the value of a property of a command.
func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(text))
}
