package redact

import (
	"strings"

	"github.com/admissiontest/admissiontest/internal/match"
)

// lastApplied is the annotation in which kubectl apply keeps the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Fields returns a copy of a decoded JSON object, or of one that contains such objects,
// in which the values that are not shown are match.Hidden.
func Fields(fields map[string]any) map[string]any {
	if fields == nil {
		return nil
	}
	return walk{func(value any) any { return match.Hidden{Value: value} }}.mapping(fields, "", "")
}

// walk copies values and replaces those that are not shown.
type walk struct{ hide func(any) any }

// value copies the value of a field. Kind is the kind of object that an item of a list is,
// if it does not say so itself.
func (w walk) value(value any, field, kind string) any {
	switch value := value.(type) {
	case map[string]any:
		return w.mapping(value, field, kind)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = w.value(item, field, kind)
		}
		return out
	default:
		return value
	}
}

// mapping copies the mapping in a field.
func (w walk) mapping(fields map[string]any, field, kind string) map[string]any {
	if own, ok := fields["kind"].(string); ok {
		kind = own
	}
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		switch {
		case w.isSecret(fields, field, kind, name):
			out[name] = w.leaves(value)
		case name == "response" && HoldsSecrets(fields["request"]):
			out[name] = w.response(value)
		case name == "items":
			out[name] = w.value(value, name, strings.TrimSuffix(kind, "List"))
		default:
			out[name] = w.value(value, w.inner(name, kind), "")
		}
	}
	return out
}

// HoldsSecrets reports whether a request of an AdmissionReview is for a kind of which values are
// not shown.
func HoldsSecrets(request any) bool {
	fields, _ := request.(map[string]any)
	kind, _ := fields["kind"].(map[string]any)
	switch kind["kind"] {
	case "Secret", "TokenRequest", "TokenReview":
		return true
	}
	return false
}

// response copies the response to such a request. The values in its patch are not shown.
func (w walk) response(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := w.mapping(fields, "response", "")
	operations, ok := fields["patch"].([]any)
	if !ok {
		if fields["patch"] != nil {
			out["patch"] = w.hide(fields["patch"])
		}
		return out
	}
	patch := make([]any, len(operations))
	for i, item := range operations {
		operation, _ := item.(map[string]any)
		shown := w.mapping(operation, "", "")
		if value, ok := operation["value"]; ok {
			shown["value"] = w.leaves(value)
		}
		patch[i] = shown
	}
	out["patch"] = patch
	return out
}

// inToken is the place of a field in the spec or status of a kind that has a token there.
const inToken = "holder of a token"

// inner returns the name of a field, or inToken.
func (walk) inner(name, kind string) string {
	if (kind == "TokenRequest" || kind == "TokenReview") && (name == "spec" || name == "status") {
		return inToken
	}
	return name
}

// isSecret reports whether the field of that name is not shown, in a mapping of some kind
// that is the value of the field in.
func (walk) isSecret(fields map[string]any, in, kind, name string) bool {
	switch name {
	case "data", "stringData":
		return kind == "Secret"
	case "token":
		return in == inToken
	case "extra":
		return in == "userInfo" || in == "user" || fields["username"] != nil || fields["user"] != nil
	case lastApplied:
		text, _ := fields[name].(string)
		return in == "annotations" && strings.Contains(text, `"Secret"`)
	default:
		return in == "header" && isCredential(name)
	}
}

// isCredential reports whether a header of HTTP has credentials.
func isCredential(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	return false
}

// leaves hides each value of a mapping, or the value itself.
func (w walk) leaves(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return w.hide(value)
	}
	out := make(map[string]any, len(fields))
	for name, inner := range fields {
		out[name] = w.hide(inner)
	}
	return out
}
