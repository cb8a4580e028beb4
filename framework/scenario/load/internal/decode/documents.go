package decode

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// Documents returns the documents of a file, without empty ones. If a document is
// malformed, it returns those before it and the error.
func Documents(name string, content []byte) ([]*strictyaml.Node, []*scenario.Error) {
	return documents(name, content, strictyaml.Parse)
}

// maxDocuments is the largest number of documents in a file.
const maxDocuments = 10_000

// TooMany returns an error for a file with too many documents, or nil.
func TooMany(name string, documents []*strictyaml.Node) *scenario.Error {
	if len(documents) <= maxDocuments {
		return nil
	}
	first := documents[maxDocuments]
	return &scenario.Error{
		File: name, Line: first.Line, Column: first.Column,
		Message: fmt.Sprintf("a file of %d documents; expected at most %d", len(documents), maxDocuments), Hint: "split it, or check the path",
	}
}

// PrivateDocuments is Documents for a file whose values can be secret: no error shows one. It refuses a file with
// too many documents before it parses it, because such a file can be large.
func PrivateDocuments(name string, content []byte) ([]*strictyaml.Node, []*scenario.Error) {
	line, separators := 0, 0
	for text := range bytes.Lines(content) {
		line++
		if !bytes.HasPrefix(text, []byte("---")) {
			continue
		}
		if separators++; separators > maxDocuments {
			return nil, []*scenario.Error{{
				File: name, Line: line, Column: 1, Message: fmt.Sprintf("a file of more than %d documents", maxDocuments), Hint: "split it, or check the path",
			}}
		}
	}
	return documents(name, content, strictyaml.ParsePrivate)
}

func documents(name string, content []byte, parse func([]byte, strictyaml.Format) ([]*strictyaml.Node, []strictyaml.Problem)) ([]*strictyaml.Node, []*scenario.Error) {
	format := strictyaml.YAML
	if strings.HasSuffix(name, ".json") {
		format = strictyaml.JSON
	}
	found, problems := parse(content, format)
	failed := make([]*scenario.Error, len(problems))
	for i, one := range problems {
		failed[i] = &scenario.Error{File: name, Line: one.Line, Column: one.Column, Message: one.Message, Hint: one.Hint}
	}
	return found, failed
}
