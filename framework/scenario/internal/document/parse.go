package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// Problem is one thing wrong in a file.
type Problem struct {
	// At has the file and the position.
	At *Node
	// Message says what is wrong and, after a semicolon, what was expected.
	Message string
	// Hint says what to do. It may be empty.
	Hint string
}

// maxDocuments is the largest number of documents in a file.
const maxDocuments = 10_000

// Parse returns the documents of a file, without empty ones. With Problems, they are of use only to see what the file
// is meant to be. It never panics. A file whose name ends with .json is JSON, which is YAML except
// for tabs and characters that are escaped as two surrogates; these are refused.
func Parse(name string, content []byte) ([]*Node, []Problem) {
	return (&builder{source: &source{name: name}}).parse(content)
}

// ParseTwice is Parse for a file whose maps can have a field twice: the Node has both.
func ParseTwice(name string, content []byte) ([]*Node, []Problem) {
	return (&builder{source: &source{name: name}, twice: true}).parse(content)
}

// ParsePrivate is Parse for a file whose values can be secret: no Problem shows one, but names of fields.
func ParsePrivate(name string, content []byte) ([]*Node, []Problem) {
	return (&builder{source: &source{name: name, private: true}}).parse(content)
}

func (b *builder) parse(content []byte) ([]*Node, []Problem) {
	text := strings.ReplaceAll(string(bytes.TrimPrefix(content, []byte("\ufeff"))), "\r\n", "\n")
	if strings.HasSuffix(b.name, ".json") {
		text = strings.ReplaceAll(text, "\t", " ") // strings of JSON contain no tabs
	}
	if !b.isText(text) {
		return nil, b.problems
	}
	return b.documents(text), b.problems
}

// documents parses the text of a file.
func (b *builder) documents(text string) (documents []*Node) {
	defer func() {
		// A panic of the parser is an error of the file.
		if cause := recover(); cause != nil {
			b.malformed(1, 1, fmt.Sprintf("the YAML parser failed: %v", cause))
		}
	}()
	b.lines = strings.Split(text, "\n")
	loader, err := yaml.NewLoader(strings.NewReader(text))
	for count := 0; err == nil; count++ {
		var document yaml.Node
		if err = loader.Load(&document); err != nil {
			break
		}
		if count == maxDocuments {
			b.fail(&document, fmt.Sprintf("a file of more than %d documents", maxDocuments), "split it, or check the path")
			return nil
		}
		for _, root := range document.Content {
			if built := b.build(root, 0); built.Kind != KindNull || built.Raw != "" {
				documents = append(documents, built)
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		b.syntaxError(err)
	}
	return documents
}

// blankFrom reports whether a line and all after it are blank.
func (b *builder) blankFrom(line int) bool {
	return strings.TrimSpace(strings.Join(b.lines[min(max(line-1, 0), len(b.lines)):], "")) == ""
}

// syntaxError reports what the parser says. The end of the file inside of a string, a list or a map is reported where
// that begins, or at the end of the text; an unknown escape at its character.
func (b *builder) syntaxError(err error) {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		b.malformed(1, 1, err.Error())
		return
	}
	mark := at.Mark
	switch {
	case b.blankFrom(mark.Line) && !b.blankFrom(at.ContextMark.Line):
		mark = at.ContextMark
	case b.blankFrom(mark.Line):
		for mark.Line > 1 && b.blankFrom(mark.Line) {
			mark.Line--
		}
		mark.Column = len(strings.TrimRight(b.lines[min(mark.Line, len(b.lines))-1], " \t\r"))
	case strings.Contains(at.Message, "unknown escape character"):
		mark.Column++
	}
	message := at.Message
	if at.ContextMsg != "" {
		message += " " + at.ContextMsg
	}
	b.malformed(min(mark.Line, len(b.lines)), mark.Column, message)
}

// isText reports whether a string is UTF-8 without control characters, and a Problem if not.
func (b *builder) isText(text string) bool {
	for i, r := range text {
		var message string
		hint := "save the file as UTF-8"
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			message = fmt.Sprintf("the byte %#02x is not UTF-8; expected a file in UTF-8", text[i])
		case isControl(r):
			message, hint = fmt.Sprintf("the control character U+%04X; expected text", r), "write it as an escape in double quotes, or save the file as UTF-8"
		default:
			continue
		}
		before := text[:i]
		b.refuse(strings.Count(before, "\n")+1, utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])+1, message, hint)
		return false
	}
	return true
}

// isControl reports whether a file must not contain a character unescaped. Some
// YAML parsers take the last three as line ends; editors do not.
func isControl(r rune) bool {
	return r == 0x7f || r < ' ' && r != '\t' && r != '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}
