// Package strictyaml parses YAML and JSON into a tree whose nodes have positions,
// and refuses what parsers of YAML do not agree on. Package scenario documents
// what it refuses.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// Problem is one thing wrong in a file.
type Problem struct {
	// Line and Column count from 1, columns in characters.
	Line, Column int
	// Message says what is wrong and, after a semicolon, what was expected.
	Message string
	// Hint says what to do. It may be empty.
	Hint string
}

// Format is the format of a file.
type Format int

// The formats. JSON is YAML, except for a few escapes and tabs.
const (
	YAML Format = iota
	JSON
)

// Parse returns the documents of a file, without empty ones. If a document is
// malformed, Parse returns those before it and the Problem. It never panics.
func Parse(content []byte, format Format) ([]*Node, []Problem) {
	return (&builder{}).parse(content, format)
}

// ParsePrivate is Parse for a file whose values can be secret: no Problem shows one. Names
// of fields are shown.
func ParsePrivate(content []byte, format Format) ([]*Node, []Problem) {
	return (&builder{private: true}).parse(content, format)
}

func (b *builder) parse(content []byte, format Format) ([]*Node, []Problem) {
	text, ok := b.source(content, format)
	if !ok {
		return nil, b.problems
	}
	return b.documents(text), b.problems
}

// documents parses the text of a file. This parser is fast, takes linear time and
// knows the position of every value, but not the position of a syntax error. Another
// parser finds that position.
func (b *builder) documents(text string) (documents []*Node) {
	defer func() {
		// A panic of the parser is an error of the file.
		if cause := recover(); cause != nil {
			b.malformed(1, 1, fmt.Sprintf("the YAML parser failed: %v", cause))
		}
	}()
	b.lines = strings.Split(text, "\n")
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			b.syntaxError(text, err)
			return documents
		}
		for _, root := range document.Content {
			built := b.build(root, 0)
			empty := built.Kind == KindNull && built.Raw == ""
			if !empty && built.Kind != KindRefused {
				documents = append(documents, built)
			}
		}
	}
}

// controlHint returns what to do about a control character. A NUL is in no text that Kubernetes
// accepts, and in every file in UTF-16.
func controlHint(r rune) string {
	if r == 0 {
		return "remove it, or save the file as UTF-8"
	}
	return fmt.Sprintf(`write it as an escape in double quotes, "\u%04X"`, r)
}

// source returns the content of a file as the parsers need it: without a byte order
// mark and with \n as line end. Lines and columns do not change.
func (b *builder) source(content []byte, format Format) (string, bool) {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	line, column := 1, 1
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			b.refuse(line, column, fmt.Sprintf("the byte %#02x is not UTF-8; expected a text file in UTF-8", content[i]), "save the file as UTF-8")
			return "", false
		}
		if isControl(r) && (r != '\r' || !bytes.HasPrefix(content[i:], []byte("\r\n"))) {
			b.refuse(line, column, fmt.Sprintf("the control character U+%04X; expected text", r), controlHint(r))
			return "", false
		}
		i, column = i+size, column+1
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	if format == JSON {
		text = fromJSON(text)
	}
	return text, true
}

// isControl reports whether a file must not contain a character unescaped. Some
// YAML parsers take the last three as line ends; editors do not.
func isControl(r rune) bool {
	return r == 0x7f || r < ' ' && r != '\t' && r != '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// fromJSON rewrites the parts of JSON that the YAML parser does not read: tabs
// between tokens (strings of JSON contain no raw tabs), the escape \/, and
// characters that are escaped as two surrogates. After such an escape columns are
// too small by a few characters.
func fromJSON(text string) string {
	text = strings.ReplaceAll(text, "\t", " ")
	if !strings.Contains(text, `\/`) && !strings.Contains(text, `\u`) {
		return text
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, `\`)
		out.WriteString(before)
		if !found || after == "" {
			out.WriteString(text[len(before):])
			return out.String()
		}
		const pair = len(`ud83d\ude00`)
		if high, low := surrogate(after, 0), surrogate(after, pair/2+1); utf16.DecodeRune(high, low) != utf8.RuneError {
			fmt.Fprintf(&out, `\U%08x`, utf16.DecodeRune(high, low))
			text = after[pair:]
			continue
		}
		if after[0] != '/' {
			out.WriteByte('\\')
		}
		out.WriteByte(after[0])
		text = after[1:]
	}
}

// surrogate returns the code of the "uXXXX" at an index of a text, or 0.
func surrogate(text string, from int) rune {
	const length = len("uXXXX")
	if len(text) < from+length || text[from] != 'u' || from > 0 && text[from-1] != '\\' {
		return 0
	}
	code, err := strconv.ParseUint(text[from+1:from+length], 16, 16)
	if err != nil {
		return 0
	}
	return rune(code)
}
