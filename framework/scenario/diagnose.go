package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxTokens bounds what the diagnosing parser is shown of one document, since it
// takes more than linear time. A scenario of 100 lines has some 700.
const maxTokens = 20_000

const hintSyntax = "check quotes, brackets and indentation here and in the line above"

// diagnose records where a text is not YAML and why. Cause is what the reading
// parser said; it is what remains where the other one finds nothing wrong.
func (b *builder) diagnose(text string, cause error) {
	if b.diagnoseTokens(text) {
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
	b.refuse(line, 1, message+"; expected YAML", hintSyntax)
}

// diagnoseTokens reports whether it found the place of a mistake. What makes the
// diagnosing parser panic it cannot place.
func (b *builder) diagnoseTokens(text string) (found bool) {
	defer func() {
		if recover() != nil {
			found = false
		}
	}()
	for _, document := range split(lexer.Tokenize(text)) {
		if problem := mistake(document); problem != nil {
			problem.File = b.file
			b.errors = append(b.errors, problem)
			return true
		}
	}
	return false
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

// mistake returns what is wrong in a document, or nil.
func mistake(tokens token.Tokens) *Error {
	flow, entries := 0, 0
	var previous token.Type
	for _, tk := range tokens {
		if message, hint := refused(tk); message != "" {
			return placed(tk, message, hint)
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
			return placed(tk, fmt.Sprintf("more than %d values within each other; expected at most so many", maxDepth), "nest less")
		}
		previous = tk.Type
	}
	if len(tokens) > maxTokens {
		return nil
	}
	_, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var syntax interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &syntax) {
		return placed(syntax.GetToken(), strings.TrimSpace(syntax.GetMessage())+"; expected YAML", hintSyntax)
	}
	return nil
}

func placed(tk *token.Token, message, hint string) *Error {
	problem := &Error{Line: 1, Column: 1, Message: message, Hint: hint}
	if tk != nil && tk.Position != nil {
		problem.Line, problem.Column = max(tk.Position.Line, 1), max(tk.Position.Column, 1)
	}
	return problem
}

// refused says what is wrong with a token that the format does not have, or that
// is none.
func refused(tk *token.Token) (message, hint string) {
	switch tk.Type {
	case token.AliasType:
		return "an anchor or alias (& or *); expected every value where it is used", "write the value out, or put the text in quotes"
	case token.DirectiveType:
		return "a YAML directive (%); expected a document without one", "remove the line"
	case token.InvalidType:
		return tk.Error + "; expected YAML", hintSyntax
	default:
		return "", ""
	}
}
