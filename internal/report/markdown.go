package report

import (
	"fmt"
	"io"
	"strings"
)

// mostMarkdown is the size of a job summary that GitHub accepts, less what the text around the report needs
// (https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions#step-isolation-and-limits).
const mostMarkdown = 1<<20 - 1<<10

// WriteMarkdown writes a report in GitHub's Markdown, for the summary of a job: the verdict, and what WriteConsole writes. That is
// in a code block, so text of servers and scenarios is never markup. The text is at most 1 MiB long, and says that something is left out.
func WriteMarkdown(w io.Writer, r Report) error {
	var text strings.Builder
	if err := WriteConsole(&text, r, ConsoleOptions{Strict: r.Strict}); err != nil {
		return err
	}
	_, word := r.Word()
	shown, more := text.String(), ""
	if most := max(0, mostMarkdown-2*longestRun(shown)); len(shown) > most {
		shown, more = shown[:max(0, strings.LastIndex(shown[:most], "\n"))], "\nand more: see the report\n"
	}
	if _, err := fmt.Fprintf(w, "## admissiontest: %s\n\n%s%s", word, codeBlock(shown), more); err != nil {
		return fmt.Errorf("write report as Markdown: %w", err)
	}
	return nil
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
