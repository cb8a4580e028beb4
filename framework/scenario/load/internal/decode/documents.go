package decode

import (
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// Documents returns the documents of a file, without empty ones. If a document is
// malformed, it returns those before it and the error.
func Documents(name string, content []byte) ([]*strictyaml.Node, []*scenario.Error) {
	return documents(name, content, strictyaml.Parse)
}

// PrivateDocuments is Documents for a file whose values can be secret: no error shows one.
func PrivateDocuments(name string, content []byte) ([]*strictyaml.Node, []*scenario.Error) {
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
