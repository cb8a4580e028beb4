package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// mostMarkdown is the size of a job summary that GitHub accepts, less what the last line needs
// (https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions#step-isolation-and-limits).
const mostMarkdown = 1<<20 - 1<<10

// WriteMarkdown writes a report in GitHub's Markdown, for the summary of a job: the verdict, a
// table of the areas, what the API server lacks, and the outcomes that are not as required, those with the
// same cause together. Text of servers and scenarios is always in code spans and blocks, so it is never
// markup. The text is at most 1 MiB long, and says how many outcomes it leaves out.
func WriteMarkdown(w io.Writer, r Report) error {
	r = r.Ordered()
	var text strings.Builder
	_, word := verdictOf(r, r.Strict)
	fmt.Fprintf(&text, "## admissiontest: %s\n\n", word)
	fmt.Fprintf(&text, "%s %s: %s\n\n", codeSpan(r.Target.Kind), codeSpan(r.Target.ServerVersion), r.Summary)
	if r.Incomplete != "" {
		fmt.Fprintf(&text, "Incomplete:\n\n%s\n", codeBlock(r.Incomplete))
	}
	writeAreas(&text, areas(r.Outcomes))
	shown := []framework.Verdict{framework.Fail, framework.Errored, framework.Inconclusive}
	if r.FailOnUnsupported {
		shown = append(shown, framework.Unsupported)
	} else if lines := codeBlock(strings.Join(unsupportedCauses(r.with(framework.Unsupported)), "\n")); r.Summary.Unsupported > 0 && text.Len()+len(lines) < mostMarkdown/2 {
		fmt.Fprintf(&text, "### unsupported\n\n%s\n", lines)
	}
	var bad []Outcome
	for _, verdict := range shown {
		bad = append(bad, r.with(verdict)...)
	}
	left := len(bad)
	for _, group := range Groups(bad) {
		first := group.Outcomes[0]
		one := fmt.Sprintf("### %s %s %s\n\n%s\n", first.Verdict, codeSpan(first.Name), codeSpan(string(first.Level)), codeBlock(FailureText(first)))
		if len(group.Outcomes) > 1 {
			one += codeBlock("and "+group.others(true)) + "\n"
		}
		if text.Len()+len(one) > mostMarkdown {
			fmt.Fprintf(&text, "and %d more: see the report\n", left)
			break
		}
		text.WriteString(one)
		left -= len(group.Outcomes)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write report as Markdown: %w", err)
	}
	return nil
}

// writeAreas writes the table of the areas.
func writeAreas(text *strings.Builder, all []area) {
	verdicts := framework.Verdicts()
	text.WriteString("| area |")
	for _, verdict := range verdicts {
		fmt.Fprintf(text, " %s |", verdict)
	}
	text.WriteString("\n|---|" + strings.Repeat("---:|", len(verdicts)) + "\n")
	for i, area := range all {
		if text.Len() > mostMarkdown/2 {
			fmt.Fprintf(text, "\nand %d more areas\n", len(all)-i)
			break
		}
		// In a table, a code span cannot have "|".
		fmt.Fprintf(text, "| %s |", tableSpan(area.name))
		summary := Count(area.outcomes)
		for _, verdict := range verdicts {
			fmt.Fprintf(text, " %s |", strings.TrimPrefix(fmt.Sprint(*summary.of(verdict)), "0"))
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
}

// codeSpan returns a string as a code span of Markdown, in one line.
func codeSpan(text string) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	if text == "" {
		return ""
	}
	fence := strings.Repeat("`", longestRun(text)+1)
	return fence + " " + text + " " + fence
}

// tableSpan is codeSpan in a cell of a table, which a vertical line would end.
func tableSpan(text string) string { return codeSpan(strings.ReplaceAll(text, "|", "¦")) }

// codeBlock returns a string as a fenced code block of Markdown.
func codeBlock(text string) string {
	fence := strings.Repeat("`", max(longestRun(text)+1, 3))
	return fence + "text\n" + strings.TrimRight(printable(text), "\n") + "\n" + fence + "\n"
}

// longestRun returns the length of the longest run of backquotes.
func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
