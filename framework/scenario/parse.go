package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds on one file. The parser needs more than linear time, so its input is
// bounded in number and not only in bytes.
const (
	maxBytes = 1 << 20
	// maxTokens of one document; a scenario of 100 lines has some 700.
	maxTokens = 20_000
)

// parseFile returns the documents of a file, those that are empty left out. It
// returns the documents that are well-formed beside the errors of the others.
func parseFile(name string, content []byte) (documents []*node, problems []*Error) {
	b := &builder{file: name}
	defer func() {
		// The parser is not ours: what it cannot cope with is an error of the file.
		if cause := recover(); cause != nil {
			b.fail(nil, fmt.Sprintf("the YAML parser failed: %v; expected YAML", cause), "look for unbalanced brackets or quotes")
			problems = b.errors
		}
	}()
	text, ok := b.source(content)
	if !ok {
		return nil, b.errors
	}
	tokens := lexer.Tokenize(text)
	for _, document := range split(tokens) {
		if !b.acceptable(document) {
			continue
		}
		if root := b.parse(document); root != nil {
			documents = append(documents, root)
		}
	}
	if len(documents) == 0 && len(b.errors) == 0 {
		b.fail(nil, "the file is empty; expected a Scenario", "write one (admissiontest schema prints its JSON Schema) or remove the file")
	}
	return documents, b.errors
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
		if r == 0x7f || r < ' ' && r != '\t' && r != '\n' && r != '\r' {
			b.refuse(line, column, fmt.Sprintf("the control character %#02x; expected text", r), `write it as an escape in double quotes, "\x01"`)
			return "", false
		}
		i, column = i+size, column+1
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	if strings.HasSuffix(b.file, ".json") {
		// White space between JSON's tokens; within a text JSON has no raw tabs.
		text = strings.ReplaceAll(text, "\t", " ")
	}
	return text, true
}

func (b *builder) refuse(line, column int, message, hint string) {
	b.errors = append(b.errors, &Error{b.file, line, column, message, hint})
}

// split cuts the tokens of a file into those of its documents.
func split(tokens token.Tokens) []token.Tokens {
	var documents []token.Tokens
	start := 0
	cut := func(end int) {
		if end > start {
			part := tokens[start:end:end]
			part[0].Prev, part[len(part)-1].Next = nil, nil
			documents = append(documents, part)
		}
		start = end
	}
	for i, tk := range tokens {
		switch tk.Type {
		case token.DocumentHeaderType:
			cut(i)
		case token.DocumentEndType:
			cut(i + 1)
		}
	}
	cut(len(tokens))
	return documents
}

// acceptable reports whether a document is one that the parser should see, and
// says why where it is not.
func (b *builder) acceptable(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		b.fail(tokens[0], fmt.Sprintf("a document of %d words and marks; expected at most %d", len(tokens), maxTokens), "split it with --- into several scenarios")
		return false
	}
	flow, entries := 0, 0
	var previous *token.Token
	for _, tk := range tokens {
		if message, hint := refused(tk); message != "" {
			b.fail(tk, message, hint)
			return false
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType:
			if previous == nil || previous.Type != token.SequenceEntryType {
				entries = 0
			}
			entries++
		}
		if flow > maxDepth || entries > maxDepth {
			b.fail(tk, fmt.Sprintf("more than %d values within each other", maxDepth), "nest less")
			return false
		}
		previous = tk
	}
	return true
}

// refused says what is wrong with a token that the format does not have.
func refused(tk *token.Token) (message, hint string) {
	switch tk.Type {
	case token.AnchorType, token.AliasType:
		return "an anchor or alias (& or *); expected every value where it is used", "write the value out, or put the text in quotes"
	case token.MergeKeyType:
		return "a merge key (<<); expected every field where it is used", "write the fields out"
	case token.TagType:
		return fmt.Sprintf("the tag %s; expected a value without one", tk.Value), `put a text in quotes: "!x"`
	case token.DirectiveType:
		return "a YAML directive (%); expected a document without one", "remove the line"
	case token.MappingKeyType:
		return "a key written with ?; expected name: value", "write the name before a colon"
	case token.InvalidType:
		return tk.Error + "; expected YAML", "check quotes, brackets and indentation here and in the line above"
	default:
		return "", ""
	}
}

// parse returns the root of one document, or nil if it is empty or malformed.
func (b *builder) parse(tokens token.Tokens) *node {
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		b.syntax(tokens, err)
		return nil
	}
	var root *node
	for _, document := range file.Docs {
		if document.Body == nil {
			continue
		}
		if _, comment := document.Body.(*ast.CommentGroupNode); comment {
			continue
		}
		root = b.build(document.Body, 0)
	}
	return root
}

// syntax records an error of the parser at its place.
func (b *builder) syntax(tokens token.Tokens, err error) {
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &placed) {
		message := placed.GetMessage()
		b.fail(placed.GetToken(), strings.TrimSpace(message)+"; expected YAML", "check quotes, brackets and indentation here and in the line above")
		return
	}
	b.fail(tokens[0], err.Error()+"; expected YAML", "check quotes, brackets and indentation")
}
