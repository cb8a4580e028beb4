package scenario

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

// maxBytes is the size of the largest file that is read.
const maxBytes = 1 << 20

// parseFile returns the documents of a file, those that are empty left out. It
// returns the documents before one that is malformed beside the error.
func parseFile(name string, content []byte) (documents []*node, problems []*Error) {
	b := &builder{file: name}
	text, ok := b.source(content)
	if !ok {
		return nil, b.errors
	}
	documents = b.documents(text)
	if len(documents) == 0 && len(b.errors) == 0 {
		b.refuse(1, 1, "the file is empty; expected a Scenario", "write one (admissiontest schema prints its JSON Schema) or remove the file")
	}
	return documents, b.errors
}

// documents parses a file's text. The parser that reads is quick, takes linear
// time and knows the place of every value, but not that of a mistake: where there
// is one, another parser is asked.
func (b *builder) documents(text string) (documents []*node) {
	defer func() {
		// The parser is not ours: what it cannot cope with is an error of the file.
		if cause := recover(); cause != nil {
			b.refuse(1, 1, fmt.Sprintf("the YAML parser failed: %v; expected YAML", cause), hintSyntax)
		}
	}()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			b.diagnose(text, err)
			return documents
		}
		for _, root := range document.Content {
			built := b.build(root, 0)
			empty := built.kind == kindNull && built.raw == ""
			if !empty && built.kind != kindRefused {
				documents = append(documents, built)
			}
		}
	}
}

// source returns a file's content as the lexer needs it: without a byte order
// mark and with plain line ends. Columns and lines stay what they were.
func (b *builder) source(content []byte) (string, bool) {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	line, column := 1, 1
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			b.refuse(line, column, fmt.Sprintf("the byte %#02x is not UTF-8; expected a text file in UTF-8", content[i]), "save the file as UTF-8")
			return "", false
		}
		if isControl(r) && (r != '\r' || !bytes.HasPrefix(content[i:], []byte("\r\n"))) {
			b.refuse(line, column, fmt.Sprintf("the control character U+%04X; expected text", r), `write it as an escape in double quotes, "\u0007"`)
			return "", false
		}
		i, column = i+size, column+1
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	if strings.HasSuffix(b.file, ".json") {
		text = fromJSON(text)
	}
	return text, true
}

// isControl reports whether a character may not stand in a file as it is. The last
// three end a line for some readers of YAML and for no editor.
func isControl(r rune) bool {
	return r == 0x7f || r < ' ' && r != '\t' && r != '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// fromJSON rewrites what JSON has and the YAML parser does not read: tabs between
// tokens (texts have no raw ones), the escape \/, and characters that are escaped
// as two surrogates. Columns after such an escape are a little too small.
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

// surrogate returns the code of a "uXXXX" that begins at a place of a text, or 0.
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
