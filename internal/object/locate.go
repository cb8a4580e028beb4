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
// character, or if the file has an escape before it that is not a quote.
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
		want := before - (len(t.Value) - len(value))
		read, same := t.common(text, value, want)
		_, there := t.common(text[read:], value[same:], 1)
		switch {
		case same == want && there == 1:
			return n + 1, from + utf8.RuneCountInString(text[:read]) + 1
		case read < len(text): // the end of the text, or an escape
			return t.Line, t.Column
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

// common returns the lengths of the longest beginnings of text in the file and of a value that are the same, up to a length
// of the value. An escaped quote in the text is the same as a quote.
func (t Text) common(text, value string, most int) (read, same int) {
	for same < most && read < len(text) && same < len(value) {
		escaped := 0
		switch rest := text[read:]; {
		case t.Style&yaml.DoubleQuotedStyle != 0 && strings.HasPrefix(rest, `\"`), t.Style&yaml.SingleQuotedStyle != 0 && strings.HasPrefix(rest, "''"):
			escaped = 1
		case t.Style&yaml.SingleQuotedStyle != 0 && rest[0] == '\'':
			return read, same // the end of the text
		}
		if text[read+escaped] != value[same] {
			return read, same
		}
		read, same = read+escaped+1, same+1
	}
	return read, same
}
