package scenario

import (
	"fmt"
	"net/textproto"
	"reflect"
	"regexp"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// This file states what the Go types of the format do not say. The loader and the JSON Schema both read it.

// requestActions are the fields of a step that send one request.
func requestActions() []string {
	return []string{"create", "update", "apply", "get", "list", "patch", "delete", "deleteCollection", "connect"}
}

// otherActions are the fields of a step that do something else. A step has exactly one of both.
func otherActions() []string {
	return []string{"parallel", "install", "remove", "script", "wait", "metrics", "files"}
}

func actions() []string { return append(requestActions(), otherActions()...) }

// patchKinds are the fields of a patch of which it has exactly one.
func patchKinds() []string { return []string{"json", "merge", "strategic"} }

// The operations of a case of a PolicyTest.
const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
	operationDelete = "DELETE"
)

func phases() []string {
	return []string{string(framework.Mutating), string(framework.Validating)}
}

// The forms of names.
const (
	words         = `[a-z0-9]+(-[a-z0-9]+)*`
	testName      = `^` + words + `(\.` + words + `)*$`
	scenarioName  = `^` + words + `(\.` + words + `)+$`
	namespaceName = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	minorVersion  = `^1\.(0|[1-9][0-9]{0,2})$`
	pluginNeed    = `^` + framework.PluginPrefix + `[^ /,"\\]+$`
)

// rule is what the format says about a field.
type rule struct {
	field string
	// enum are the only values of a string.
	enum []string
	// pattern is the regular expression of a string, expected describes it, and hint says what to write instead
	// of a string. Without expected, the checker has its own message.
	pattern, expected string
	hint              func(string) string
	// meaningful is true if an empty list or map is an expectation that every result meets.
	meaningful bool
	// compared is not nil for an expected value, which can have operators.
	compared *compared
	// kinds are the kinds of a value of type any. Nil is every kind.
	kinds []document.Kind
}

// compared says what an expected value is compared with.
type compared struct {
	// typ is the type of the actual value, and what its name in messages. Nil if its fields are not known.
	typ  reflect.Type
	what string
	// keys are all keys that the actual map can have, in the form that canonical returns.
	keys      []string
	canonical func(string) string
	// always is true if there is always a value, and natural if it is a number that is never negative.
	always, natural bool
}

func comparedWith[T any](what string) *compared {
	return &compared{typ: reflect.TypeFor[T](), what: what}
}

// rules has the rules for the fields of structs.
func rules() map[reflect.Type][]rule {
	isolation := rule{field: "isolation", enum: []string{string(IsolationNone)}}
	apiVersion := rule{field: "apiVersion", enum: []string{APIVersion}}
	return map[reflect.Type][]rule{
		reflect.TypeFor[Scenario](): {apiVersion, {field: "kind", enum: []string{Kind, KindPolicyTest}}},
		reflect.TypeFor[Metadata](): {{
			field: "name", pattern: scenarioName, hint: didYouMeanName,
			expected: "lower-case words separated by dots, the area first, such as reinvocation.if-needed.again",
		}},
		reflect.TypeFor[Spec](): {
			isolation, {field: "level", enum: texts(framework.Levels())},
			{field: "since", pattern: minorVersion, expected: "a Kubernetes minor version", hint: minorVersionHint},
			{field: "until", pattern: minorVersion, expected: "a Kubernetes minor version", hint: minorVersionHint},
		},
		reflect.TypeFor[Namespace](): {{field: "name", pattern: namespaceName}},
		reflect.TypeFor[Wait]():      {{field: "object", meaningful: true, compared: &compared{}}},
		reflect.TypeFor[Metrics]():   {{field: "samples", compared: &compared{typ: reflect.TypeFor[[]sample](), what: "a sample of a metric", always: true}}},
		reflect.TypeFor[Expectation](): {
			{field: "code", meaningful: true},
			{field: "reason", meaningful: true},
			{field: "message", meaningful: true},
			{field: "details", meaningful: true, compared: comparedWith[metav1.StatusDetails]("status.details")},
			{field: "object", meaningful: true, compared: &compared{}},
			{field: "warnings", compared: &compared{always: true}, kinds: []document.Kind{document.KindList, document.KindMapping}},
			{field: "audit", meaningful: true, compared: comparedWith[auditEvent]("an audit event")},
			{field: "distinct", meaningful: true},
			{field: "overlapping", meaningful: true},
		},
		reflect.TypeFor[Calls]():   {{field: "include", meaningful: true}, {field: "exclude", meaningful: true}},
		reflect.TypeFor[Call]():    callRules(),
		reflect.TypeFor[Plugins](): {{field: "exclude", meaningful: true}},
		reflect.TypeFor[PluginCall](): {
			{field: "phase", enum: phases()},
			{field: "refused", compared: comparedWith[refusal]("a refusal by a plugin"), kinds: []document.Kind{document.KindBool, document.KindMapping}},
		},
		reflect.TypeFor[PolicyTest]():         {apiVersion, {field: "kind", enum: []string{KindPolicyTest}}, isolation},
		reflect.TypeFor[PolicyTestMetadata](): {{field: "name", pattern: testName, expected: "lower-case words separated by dots", hint: didYouMeanWord}},
		reflect.TypeFor[ContractException]():  {{field: "until", pattern: `^\d{4}-\d{2}-\d{2}$`, expected: "a day, such as 2027-01-31", hint: func(string) string { return "write YYYY-MM-DD" }}},
		reflect.TypeFor[PolicyCase]():         {{field: "operation", enum: []string{operationCreate, operationUpdate, operationDelete}}},
	}
}

// callRules are the rules for an expected call of a webhook.
func callRules() []rule {
	return []rule{
		{field: "phase", enum: phases()},
		{field: "review", meaningful: true, compared: comparedWith[review]("an AdmissionReview")},
		{field: "request", meaningful: true, compared: comparedWith[admissionv1.AdmissionRequest]("the request of an AdmissionReview")},
		{field: "query", meaningful: true, compared: &compared{keys: []string{"timeout"}, canonical: func(name string) string { return name }, what: "query parameter"}},
		{field: "header", meaningful: true, compared: &compared{keys: headers(), canonical: textproto.CanonicalMIMEHeaderKey, what: "header"}},
		{field: "response", meaningful: true, compared: comparedWith[response]("the response of an AdmissionReview")},
		{field: "path", compared: &compared{always: true}},
		{field: "proto", compared: &compared{always: true}},
		{field: "serverName", compared: &compared{}},
		{field: "protocols", compared: &compared{}},
		{field: "clientCertificate", compared: &compared{}},
		{field: "connection", compared: &compared{always: true}},
		{field: "code", compared: &compared{natural: true}},
		{field: "latencyMillis", compared: &compared{natural: true}},
		{field: "requestBytes", compared: &compared{always: true, natural: true}},
		{field: "responseBytes", compared: &compared{natural: true}},
	}
}

// shorts are the short forms of structs.
func shorts() map[reflect.Type]document.Short {
	const none = "write [] to expect no call"
	return map[reflect.Type]document.Short{
		reflect.TypeFor[Call]():           {Field: "webhook", Kind: document.KindText},
		reflect.TypeFor[PluginCall]():     {Field: "plugin", Kind: document.KindText},
		reflect.TypeFor[framework.User](): {Field: "name", Kind: document.KindText},
		reflect.TypeFor[Calls](): {
			Field: "inOrder", Kind: document.KindList, Hint: none,
			Expected: "a list of calls, or a map with inOrder, anyOrder, include or exclude",
		},
		reflect.TypeFor[Plugins](): {
			Field: "inOrder", Kind: document.KindList, Hint: none,
			Expected: "a list of calls of plugins, or a map with inOrder and exclude",
		},
	}
}

// fileFormat is the format of files, as the loader reads it.
type fileFormat struct {
	document.Format
	rules    map[reflect.Type][]rule
	patterns map[string]*regexp.Regexp
}

func newFormat() *fileFormat {
	f := &fileFormat{rules: rules(), patterns: map[string]*regexp.Regexp{}}
	for _, all := range f.rules {
		for _, one := range all {
			f.patterns[one.pattern] = regexp.MustCompile(one.pattern)
		}
	}
	f.Structs = document.StructsOf(reflect.TypeFor[Scenario](), reflect.TypeFor[PolicyTest]())
	f.Shorts = shorts()
	f.Lists = []reflect.Type{reflect.TypeFor[OneOrMore[string]](), reflect.TypeFor[OneOrMore[int]]()}
	f.Customs = map[reflect.Type]func(*document.Decoder, *document.Node, reflect.Value, *document.Path){
		reflect.TypeFor[Denied]():        decodeDenied,
		reflect.TypeFor[Manifests]():     decodeManifests,
		reflect.TypeFor[hook.Duration](): decodeDuration,
	}
	return f
}

// decodeDenied decodes Denied, for which true, a string and a list of strings are short forms.
func decodeDenied(d *document.Decoder, n *document.Node, into reflect.Value, where *document.Path) {
	target, _ := into.Addr().Interface().(*Denied)
	switch {
	case n.Value == true:
	case n.Kind == document.KindText, n.Kind == document.KindList:
		d.Value(n, reflect.ValueOf(&target.Message).Elem(), where)
	case n.Kind == document.KindMapping:
		d.Struct(n, into, where)
	default:
		d.Wrong(n, where, "true, a part of the message, a list of them, or a map with message, policy, binding and error", "")
	}
}

// decodeManifests decodes what readers of PolicyTests check.
func decodeManifests(_ *document.Decoder, n *document.Node, into reflect.Value, _ *document.Path) {
	var all Manifests
	for _, item := range n.AsList().Items {
		all = append(all, item.Plain())
	}
	into.Set(reflect.ValueOf(all))
}

func decodeDuration(d *document.Decoder, n *document.Node, into reflect.Value, where *document.Path) {
	text, ok := n.Value.(string)
	length, err := time.ParseDuration(text)
	if !ok || err != nil || length < 0 {
		hint := `write "150ms" or "2s"`
		if n.Kind == document.KindInteger && n.Raw != "0" {
			hint = fmt.Sprintf("write %q for milliseconds, or %q", n.Raw+"ms", n.Raw+"s")
		}
		d.Wrong(n, where, "a duration with its unit", hint)
		return
	}
	into.SetInt(int64(length))
}

// didYouMeanName suggests the name of a scenario that a wrong one probably means.
func didYouMeanName(name string) string {
	guess := strings.NewReplacer(" ", "-", "_", "-", "/", ".").Replace(strings.ToLower(strings.TrimSpace(name)))
	if !isScenarioName.MatchString(guess) {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", guess)
}

// didYouMeanWord suggests the name of a PolicyTest.
func didYouMeanWord(name string) string {
	if word := slugWord(name); word != "" {
		return fmt.Sprintf("did you mean %q?", word)
	}
	return ""
}

// texts returns values as strings.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}

func minorVersionHint(string) string { return `write it as "1.36"` }
