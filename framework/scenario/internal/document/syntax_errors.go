package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxTokens is the largest number of tokens in a document for which the second
// parser runs, because it takes more than linear time. A scenario of 100 lines has
// about 700.
const maxTokens = 20_000

const hintSyntax = "check quotes, brackets and indentation here and in the line above"

// syntaxError reports the position of a syntax error, which the second parser
// finds. If it finds none, the report is the error of the first parser.
func (b *builder) syntaxError(text string, cause error) {
	if b.locate(text) {
		return
	}
	message := strings.TrimPrefix(cause.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if parsed, err := strconv.Atoi(number); err == nil {
				line, message = parsed, what
			}
		}
	}
	line = min(line, strings.Count(text, "\n")+1)
	b.malformed(line, 1, message)
}

// locate reports whether it found the position of a syntax error. It has not if
// the second parser panics.
func (b *builder) locate(text string) (found bool) {
	defer func() {
		if recover() != nil {
			found = false
		}
	}()
	for _, document := range split(lexer.Tokenize(text)) {
		if b.firstError(document) {
			return true
		}
	}
	return false
}

// split divides the tokens of a file into documents.
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

// firstError reports the first Problem in a document, and whether there is one.
func (b *builder) firstError(tokens token.Tokens) bool {
	flow, entries := 0, 0
	var previous token.Type
	for _, tk := range tokens {
		if message, hint := refused(tk); message != "" {
			return b.refuseToken(tk, message, hint)
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			if previous != tk.Type {
				entries = 0
			}
			entries++
		}
		if flow > maxDepth || entries > maxDepth {
			return b.refuseToken(tk, fmt.Sprintf("values are nested more than %d levels deep; expected at most %d", maxDepth, maxDepth), "reduce the nesting")
		}
		previous = tk.Type
	}
	if len(tokens) > maxTokens {
		return false
	}
	_, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var syntax interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &syntax) {
		return b.refuseToken(syntax.GetToken(), strings.TrimSpace(syntax.GetMessage()), hintSyntax)
	}
	return false
}

// refuseToken reports a Problem at the position of a token, and returns true.
func (b *builder) refuseToken(tk *token.Token, message, hint string) bool {
	line, column := 1, 1
	if tk != nil && tk.Position != nil {
		line, column = tk.Position.Line, tk.Position.Column
	}
	if hint == hintSyntax {
		b.malformed(line, column, message)
	} else {
		b.refuse(line, column, message, hint)
	}
	return true
}

// refused returns what is wrong with a token that is invalid or not allowed, or "".
func refused(tk *token.Token) (message, hint string) {
	switch tk.Type {
	case token.AliasType:
		return "an anchor or alias (& or *); expected the value itself", "write the value out, or put the text in quotes"
	case token.DirectiveType:
		return "a YAML directive (%); expected a document without one", "remove the line"
	case token.InvalidType:
		return tk.Error, hintSyntax
	default:
		return "", ""
	}
}
