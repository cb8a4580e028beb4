package scenario

import (
	_ "embed"
	"net/http"
	"reflect"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

//go:generate go test -run ^TestSchemaIsCurrent$ -update .

// schema is the JSON Schema of a file of Scenarios or PolicyTests. The tests write it from the Go types.
//
//go:embed schema.json
var schema []byte

// Schema returns the indented JSON Schema (draft 2020-12) of a file of Scenarios or PolicyTests. Editors use it for
// completion; its descriptions come from the Go documentation. Unknown fields are invalid, except in manifests.
// [Load] refuses everything that the schema refuses, and more. The error is always nil.
func Schema() ([]byte, error) { return append([]byte(nil), schema...), nil }

// requestActions are the fields of a step that send one request.
func requestActions() []string {
	return []string{"create", "update", "apply", "get", "list", "patch", "delete", "deleteCollection", "connect"}
}

// otherActions are the fields of a step that do something else. A step has exactly one of both.
func otherActions() []string {
	return []string{"parallel", "install", "remove", "script", "wait", "metrics", "files"}
}

func actions() []string { return append(requestActions(), otherActions()...) }

// The operations of a case of a PolicyTest.
const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
	operationDelete = "DELETE"
)

// The forms of names.
const (
	words         = `[a-z0-9]+(-[a-z0-9]+)*`
	testName      = `^` + words + `(\.` + words + `)*$`
	scenarioName  = `^` + words + `(\.` + words + `)+$`
	namespaceName = `^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`
	minorVersion  = `^1\.(0|[1-9][0-9]{0,2})$`
	pluginNeed    = `^` + framework.PluginPrefix + `[^ /,"\\]+$`
	notBlank      = `\S`
	someWord      = `[A-Za-z0-9]`
	stepName      = `^[^.()$ ]+$`
	day           = `^\d{4}-\d{2}-\d{2}$`
	headerValue   = `^[^\x00-\x08\x0a-\x1f\x7f]*$`
	duration      = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
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

// forms describe the patterns of the schema.
func forms() map[string]document.Form {
	return map[string]document.Form{
		scenarioName:  {Expected: "lower-case words separated by dots, the area first, such as reinvocation.if-needed.again"},
		testName:      {Expected: "lower-case words separated by dots"},
		namespaceName: {Expected: "at most 40 lower-case letters, digits and hyphens, such as other", Hint: "write a short name: the name on the API server is $(id)-NAME"},
		minorVersion:  {Expected: "a Kubernetes minor version", Hint: `write it as "1.36"`},
		pluginNeed:    {Expected: "plugin/NAME, such as plugin/LimitRanger"},
		notBlank:      {Expected: "a string that is not blank"},
		someWord:      {Expected: "a name with letters or digits"},
		stepName:      {Expected: "a name without dots, spaces, $ and parentheses"},
		day:           {Expected: "a day, such as 2027-01-31", Hint: "write YYYY-MM-DD"},
		headerValue:   {Expected: "the value of a header"},
		duration:      {Expected: "a duration with its unit", Hint: `write "150ms" or "2s"`},
	}
}

// fileFormat is the format of files, as the loader reads it.
type fileFormat struct {
	schema      *document.Schema
	shorts      map[reflect.Type]string
	comparisons map[reflect.Type]map[string]compared
}

// theFormat returns the format, which it makes once, because the schema takes some time.
var theFormat = sync.OnceValues(func() (*fileFormat, error) { //nolint:gochecknoglobals // it does not change
	compiled, err := document.NewSchema(schema, forms())
	return &fileFormat{schema: compiled, shorts: shorts(), comparisons: comparisons()}, err
})
