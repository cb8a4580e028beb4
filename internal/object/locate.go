package object

import (
	"strings"
	"unicode"
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
// character, or if the characters of its value cannot be found in the file.
func (t Text) Locate(line, column int) (fileLine, fileColumn int) {
	want, ok := offset(t.Value, line, column)
	if !ok {
		return t.Line, t.Column
	}
	s := &source{lines: t.Lines, line: t.Line - 1, column: t.Column - 1, style: t.Style}
	switch {
	case s.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		s.line, s.column = s.line+1, 0 // after the header
	case s.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		s.column++
	}
	for at, char := range []rune(t.Value) {
		if !unicode.IsSpace(char) {
			s.skipSpace()
		}
		if at == want {
			return s.line + 1, s.column + 1
		}
		if !s.read(char) {
			break
		}
	}
	return t.Line, t.Column
}

// offset returns the index of a character of a string.
func offset(text string, line, column int) (index int, ok bool) {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) || column < 1 || column > utf8.RuneCountInString(lines[line-1])+1 {
		return 0, false
	}
	for _, before := range lines[:line-1] {
		index += utf8.RuneCountInString(before) + 1
	}
	return index + column - 1, index+column-1 < utf8.RuneCountInString(text)
}

// source is a place in the lines of a file. Columns are indices of characters.
type source struct {
	lines        []string
	line, column int
	style        yaml.Style
	// runes are the characters of the line with the index of.
	runes []rune
	of    int
}

// rest returns the rest of the line.
func (s *source) rest() []rune {
	if s.line >= len(s.lines) {
		return nil
	}
	if s.runes == nil || s.of != s.line {
		s.runes, s.of = []rune(s.lines[s.line]), s.line
	}
	return s.runes[min(s.column, len(s.runes)):]
}

// skipSpace skips the spaces, the ends of lines and the indentation before a character that is none of
// these.
func (s *source) skipSpace() {
	for s.line < len(s.lines) {
		rest := s.rest()
		switch {
		case len(rest) == 0 || len(rest) == 1 && rest[0] == '\\' && s.style&yaml.DoubleQuotedStyle != 0:
			s.line, s.column = s.line+1, 0
		case unicode.IsSpace(rest[0]):
			s.column++
		default:
			return
		}
	}
}

// read skips what stands for a character of the value. It returns false if something else is there.
func (s *source) read(char rune) bool {
	rest := s.rest()
	switch {
	case s.style&yaml.DoubleQuotedStyle != 0 && len(rest) > 1 && rest[0] == '\\':
		length := map[rune]int{'x': 4, 'u': 6, 'U': 10}[rest[1]]
		s.column += max(length, 2)
		return unicode.IsSpace(char) || length > 0 || rest[1] == char || strings.ContainsRune("0abtnvfreN_LP/", rest[1])
	case unicode.IsSpace(char):
		if len(rest) > 0 && rest[0] == char {
			s.column++
		} else if len(rest) == 0 && s.line < len(s.lines) {
			s.line, s.column = s.line+1, 0
		}
		return true
	case len(rest) == 0 || rest[0] != char:
		return false
	case char == '\'' && s.style&yaml.SingleQuotedStyle != 0:
		s.column++ // it is written twice
	}
	s.column++
	return true
}
