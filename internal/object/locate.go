package object

import (
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// Text is a string in a YAML file.
type Text struct {
	// Lines are the lines of the file. Line and Column are where the text begins, from 1.
	Lines        []string
	Line, Column int
	Style        yaml.Style
	Value        string
}

// Locate returns the position in the file of a character of a string: that of a line and column, from 1 and in
// characters, of its value. It returns the position of the text itself if the text has no such
// character, or if the file has an escape before it: \\n in double quotes, or two single quotes.
func (t Text) Locate(line, column int) (fileLine, fileColumn int) {
	before, ok := offset(t.Value, line, column)
	if !ok {
		return t.Line, t.Column
	}
	value, from := t.Value, t.Column-1
	n := t.Line - 1
	switch {
	case t.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		n, from = n+1, 0 // after the header
	case t.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		from++
	}
	for ; n < len(t.Lines); n, from = n+1, 0 {
		runes := []rune(t.Lines[n])
		for from < len(runes) && strings.ContainsRune(" \t", runes[from]) {
			from++
		}
		value = strings.TrimLeft(value, " \t\n")
		text := strings.TrimRight(string(runes[min(from, len(runes)):]), " \t\r")
		same := common(text, value)
		if at := len(t.Value) - len(value); before >= at && before < at+same {
			return n + 1, from + utf8.RuneCountInString(t.Value[at:before]) + 1
		}
		if same < len(text) {
			break // the end of the text, or an escape
		}
		value = value[same:]
	}
	return t.Line, t.Column
}

// offset returns the number of bytes before a character of a string.
func offset(text string, line, column int) (before int, ok bool) {
	lines := strings.SplitAfter(text, "\n")
	if line < 1 || line > len(lines) || column < 1 || column > utf8.RuneCountInString(lines[line-1]) {
		return 0, false
	}
	return len(strings.Join(lines[:line-1], "")) + len(string([]rune(lines[line-1])[:column-1])), true
}

// common returns the length of the longest common prefix, in bytes.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
