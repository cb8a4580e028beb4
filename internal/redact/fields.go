package redact

import (
	"maps"
	"strings"

	"github.com/admissiontest/admissiontest/internal/match"
)

// lastApplied is the annotation in which kubectl apply keeps the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// marked is Fields for the value of a field. Kind is the kind of object that an item of a list is,
// if it does not say so itself.
func marked(value any, field, kind string) any {
	switch value := value.(type) {
	case map[string]any:
		return markedObject(value, field, kind)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = marked(item, field, kind)
		}
		return out
	default:
		return value
	}
}

// markedObject is Fields for the map in a field.
func markedObject(fields map[string]any, field, kind string) map[string]any {
	if fields == nil {
		return nil
	}
	if own, ok := fields["kind"].(string); ok {
		kind = own
	}
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		switch {
		case isSecret(fields, field, kind, name):
			out[name] = hidden(value)
		case name == "response" && HoldsSecrets(fields["request"]):
			out[name] = marked(value, aboutSecrets, "")
		case name == "patch" && field == aboutSecrets:
			out[name] = markedPatch(value)
		case name == "items":
			out[name] = marked(value, name, strings.TrimSuffix(kind, "List"))
		default:
			out[name] = marked(value, inner(name, kind), "")
		}
	}
	return out
}

// hidden returns a map with each value hidden, and any other value hidden as a whole.
func hidden(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return match.Hidden{Value: value}
	}
	out := make(map[string]any, len(fields))
	for name, inner := range fields {
		out[name] = match.Hidden{Value: inner}
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

// aboutSecrets is the place of the response to such a request.
const aboutSecrets = "response about secrets"

// markedPatch is Fields for the patch of a response to such a request.
func markedPatch(patch any) any {
	operations, ok := patch.([]any)
	switch {
	case patch == nil:
		return nil
	case !ok:
		return match.Hidden{Value: patch}
	}
	out := make([]any, len(operations))
	for i, item := range operations {
		operation, _ := item.(map[string]any)
		if value, ok := operation["value"]; ok {
			operation = maps.Clone(operation)
			operation["value"] = hidden(value)
			item = operation
		}
		out[i] = item
	}
	return out
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

// isSecret reports whether the field of that name is not shown, in a map of some kind
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
