package report

import "strings"

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
