package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// WriteMarkdown writes the comparison in GitHub's Markdown: a table of the servers with their claims, a table of the
// areas, and for each server what did not pass and why. Text of servers is always in code spans, so it is never markup.
func (m Matrix) WriteMarkdown(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| server | Kubernetes | pass | fail | unsupported | inconclusive, error, skipped |")
	for _, profile := range m.Profiles {
		fmt.Fprintf(&text, " %s |", tableSpan(profile.Name))
	}
	text.WriteString("\n|---|---|--:|--:|--:|--:|" + strings.Repeat("---|", len(m.Profiles)) + "\n")
	for i, server := range m.Servers {
		s := server.Report.Summary
		fmt.Fprintf(&text, "| %s | %s | %d | %d | %d | %d |", tableSpan(server.Name), tableSpan(server.Report.Target.ServerVersion), s.Pass, s.Fail, s.Unsupported, s.Inconclusive+s.Error+s.Skipped)
		for _, profile := range m.Profiles {
			fmt.Fprintf(&text, " %s |", profile.Claims[i].short())
		}
		text.WriteString("\n")
	}
	text.WriteString("\n## Areas\n\nHow many of an area's requirements passed, of how many were run.\n\n| area |")
	for _, server := range m.Servers {
		fmt.Fprintf(&text, " %s |", tableSpan(server.Name))
	}
	text.WriteString("\n|---|" + strings.Repeat("--:|", len(m.Servers)) + "\n")
	for _, area := range m.Areas {
		fmt.Fprintf(&text, "| %s |", tableSpan(area.Name))
		for _, cell := range area.Cells {
			text.WriteString(" " + passedOf(cell) + " |")
		}
		text.WriteString("\n")
	}
	for _, server := range m.Servers {
		server.writeMarkdown(&text)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// short is a cell of the table: "partial: 250 of 262".
func (c Claim) short() string {
	if c.Profile == "" {
		return ""
	}
	return fmt.Sprintf("%s: %d of %d", c.Verdict, c.Passed, c.Requirements)
}

// passedOf is a cell of the table: "12 of 14, 1 fail".
func passedOf(s Summary) string {
	switch {
	case s.Total == 0:
		return ""
	case s.Fail > 0:
		return fmt.Sprintf("%d of %d, **%d fail**", s.Pass, s.Total, s.Fail)
	case s.Pass == s.Total:
		return fmt.Sprintf("%d", s.Total)
	}
	return fmt.Sprintf("%d of %d", s.Pass, s.Total)
}

// writeMarkdown writes why requirements did not pass: those that failed, each with its sentence, and for the others
// the causes and how many requirements each costs.
func (c Column) writeMarkdown(text *strings.Builder) {
	failed, left := c.Report.with(framework.Fail), []Outcome(nil)
	for _, outcome := range c.Report.Outcomes {
		if !outcome.NotReached && outcome.Verdict != framework.Pass && outcome.Verdict != framework.Fail {
			left = append(left, outcome)
		}
	}
	if len(failed)+len(left) == 0 && c.Report.Incomplete == "" {
		return
	}
	fmt.Fprintf(text, "\n## %s\n\n", codeSpan(c.Name))
	if c.Report.Incomplete != "" {
		fmt.Fprintf(text, "Incomplete: %s\n\n", codeSpan(short(c.Report.Incomplete)))
	}
	for _, outcome := range failed {
		fmt.Fprintf(text, "- **fail** %s %s: %s\n", codeSpan(outcome.Name), outcome.Level, codeSpan(short(outcome.Reason)))
	}
	groups := Groups(left)
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(len(b.Outcomes), len(a.Outcomes)) })
	for _, group := range groups {
		first := group.Outcomes[0]
		names := codeSpan(first.Name)
		if len(group.Outcomes) > 1 {
			names += fmt.Sprintf(" and %d more", len(group.Outcomes)-1)
		}
		fmt.Fprintf(text, "- %s: %s (%s)\n", first.Verdict, codeSpan(short(cmp.Or(group.Cause, first.Reason))), names)
	}
}

// mostReason is how many characters of a reason the comparison has: the report of the server has the rest.
const mostReason = 140

// short returns the beginning of a reason, without what a program printed.
func short(reason string) string {
	text, _, _ := strings.Cut(FirstLine(reason), ": start kube-apiserver of ")
	if runes := []rune(text); len(runes) > mostReason {
		text = string(runes[:mostReason]) + "…"
	}
	return text
}
