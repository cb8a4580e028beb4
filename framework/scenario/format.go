package scenario

import (
	"net/http"
	"reflect"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

//go:generate go test -run ^TestSchemaIsCurrent$ -update .

// Schema returns the indented JSON Schema (draft 2020-12) of a file of Scenarios or PolicyTests. Editors use it for
// completion; its descriptions come from the Go documentation. Unknown fields are invalid, except in manifests.
// [Load] refuses everything that the schema refuses, and more. The error is always nil.
func Schema() ([]byte, error) { return docs.Schema("scenario") }

// The operations of a case of a PolicyTest.
const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
	operationDelete = "DELETE"
)

// compared says what an expected value is compared with: the type of the actual value, and what its name in messages.
// Without a type, its fields are not known.
type compared struct {
	typ  reflect.Type
	what string
}

func comparedWith[T any](what string) compared { return compared{reflect.TypeFor[T](), what} }

// comparisons has the fields of structs that are expected values, which can have operators.
func comparisons() map[reflect.Type]map[string]compared {
	return map[reflect.Type]map[string]compared{
		reflect.TypeFor[Wait]():    {"object": {}},
		reflect.TypeFor[Metrics](): {"samples": comparedWith[[]sample]("a sample of a metric")},
		reflect.TypeFor[Expectation](): {
			"details":  comparedWith[metav1.StatusDetails]("status.details"),
			"object":   {},
			"warnings": {},
			"audit":    comparedWith[auditEvent]("an audit event"),
		},
		reflect.TypeFor[Call](): {
			"review":            comparedWith[review]("an AdmissionReview"),
			"request":           comparedWith[admissionv1.AdmissionRequest]("the request of an AdmissionReview"),
			"query":             comparedWith[query]("the query that an API server sends"),
			"header":            comparedWith[http.Header]("the headers that an API server sends"),
			"response":          comparedWith[response]("the response of an AdmissionReview"),
			"path":              {},
			"proto":             {},
			"serverName":        {},
			"protocols":         {},
			"clientCertificate": {},
			"connection":        {},
			"code":              {},
			"latencyMillis":     {},
			"requestBytes":      {},
			"responseBytes":     {},
		},
		reflect.TypeFor[PluginCall](): {"refused": comparedWith[refusal]("a refusal by a plugin")},
	}
}

// shorts are the structs for which the value of one of their fields is a short form.
func shorts() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[Call]():           "webhook",
		reflect.TypeFor[PluginCall]():     "plugin",
		reflect.TypeFor[framework.User](): "name",
		reflect.TypeFor[Calls]():          "inOrder",
		reflect.TypeFor[Plugins]():        "inOrder",
		reflect.TypeFor[Denied]():         "message",
	}
}

// lists are the types of lists for which one value is a short form of a list of one.
func lists() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[OneOrMore[string]](), reflect.TypeFor[OneOrMore[int]](), reflect.TypeFor[Manifests]()}
}

// theFormat returns the compiled schema, which it makes once, because that takes some time.
var theFormat = sync.OnceValues(func() (*document.Schema, error) { //nolint:gochecknoglobals // it does not change
	schema, err := Schema()
	if err != nil {
		return nil, err
	}
	return document.NewSchema(schema)
})
