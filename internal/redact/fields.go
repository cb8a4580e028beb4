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
	out := copyOf(fields).(map[string]any)
	visit(func(in map[string]any, name string) { in[name] = match.Hidden{Value: in[name]} }).mapping(out, "", "")
	return out
}

// copyOf returns a copy of a decoded JSON value.
func copyOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, inner := range value {
			out[name] = copyOf(inner)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = copyOf(inner)
		}
		return out
	default:
		return value
	}
}

// visit is called for each value that is not shown, with the mapping that has it and its name
// there. It can replace the value.
type visit func(in map[string]any, name string)

// value visits the value of a field. Kind is the kind of object that an item of a list is,
// if it does not say so itself.
func (v visit) value(value any, field, kind string) {
	switch value := value.(type) {
	case map[string]any:
		v.mapping(value, field, kind)
	case []any:
		for _, item := range value {
			v.value(item, field, kind)
		}
	}
}

// mapping visits the mapping in a field.
func (v visit) mapping(fields map[string]any, field, kind string) {
	if own, ok := fields["kind"].(string); ok {
		kind = own
	}
	for name, value := range fields {
		switch {
		case isSecret(fields, field, kind, name):
			v.leaves(fields, name)
		case name == "response" && HoldsSecrets(fields["request"]):
			v.value(value, aboutSecrets, "")
		case name == "patch" && field == aboutSecrets:
			v.patch(fields)
		case name == "items":
			v.value(value, name, strings.TrimSuffix(kind, "List"))
		default:
			v.value(value, inner(name, kind), "")
		}
	}
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

// aboutSecrets is the place of the response to such a request.
const aboutSecrets = "response about secrets"

// patch visits the values in the patch of a response to such a request.
func (v visit) patch(response map[string]any) {
	operations, ok := response["patch"].([]any)
	if !ok {
		if response["patch"] != nil {
			v(response, "patch")
		}
		return
	}
	for _, item := range operations {
		operation, _ := item.(map[string]any)
		if _, ok := operation["value"]; ok {
			v.leaves(operation, "value")
		}
	}
}

// inToken is the place of a field in the spec or status of a kind that has a token there.
const inToken = "holder of a token"

// inner returns the name of a field, or inToken.
func inner(name, kind string) string {
	if (kind == "TokenRequest" || kind == "TokenReview") && (name == "spec" || name == "status") {
		return inToken
	}
	return name
}

// isSecret reports whether the field of that name is not shown, in a mapping of some kind
// that is the value of the field in.
func isSecret(fields map[string]any, in, kind, name string) bool {
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

// leaves visits each value of the mapping of that name, or the value itself.
func (v visit) leaves(in map[string]any, name string) {
	fields, ok := in[name].(map[string]any)
	if !ok {
		v(in, name)
		return
	}
	for inner := range fields {
		v(fields, inner)
	}
}
