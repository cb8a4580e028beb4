package vary

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/fields"
)

// maker makes objects of a kind from the OpenAPI v3 document of an API server.
type maker struct {
	document map[string]any
	kind     schema.GroupVersionKind
}

// schema returns the schema at a path, or nil.
func (m *maker) schema(path cel.Path) map[string]any {
	return fields.SchemaAt(m.document, m.kind, path)
}

// Example is a name, the value of a label, an image. Labels and selectors have exampleKey, so that they fit each other.
const (
	Example    = "example"
	exampleKey = "app"
)

// textForms are texts that formats ask for, tried one after the other.
func textForms() []string {
	return []string{Example, "example.com/example", "/example", "https://example.com", "10.0.0.1", "* * * * *", "1", "2030-01-01T00:00:00Z"}
}

// smallest returns a value for a path: with what the schema requires, and labels and selectors that fit each other.
func (m *maker) smallest(path cel.Path) any {
	at := m.schema(path)
	if value := at["default"]; value != nil && value != "" && !isEmpty(value) {
		return runtime.DeepCopyJSONValue(value)
	}
	if enum, _ := at["enum"].([]any); len(enum) > 0 {
		return enum[0]
	}
	name := fields.TypeAt(m.document, m.kind, path)
	switch {
	case strings.HasSuffix(name, ".LabelSelector"):
		return map[string]any{"matchLabels": map[string]any{exampleKey: Example}}
	case strings.HasSuffix(name, ".ObjectMeta"):
		return map[string]any{"labels": map[string]any{exampleKey: Example}}
	case strings.HasSuffix(name, ".resource.Quantity"):
		return "1"
	case at["format"] == "int-or-string" || at["x-kubernetes-int-or-string"] == true:
		return int64(1)
	}
	switch at["type"] {
	case "boolean":
		return true
	case "integer", "number":
		least, _ := at["minimum"].(float64)
		return int64(max(least, 1))
	case "array":
		return []any{m.smallest(append(slices.Clone(path), 0))}
	case "string":
		if at["format"] == "date-time" {
			return "2030-01-01T00:00:00Z"
		}
		least, _ := at["minLength"].(float64)
		return Example + strings.Repeat("x", min(max(0, int(least)-len(Example)), 1000))
	}
	object := map[string]any{}
	required, _ := at["required"].([]any)
	for _, each := range required {
		object[fmt.Sprint(each)] = m.smallest(append(slices.Clone(path), fmt.Sprint(each)))
	}
	if at["additionalProperties"] != nil {
		object[exampleKey] = m.smallest(append(slices.Clone(path), exampleKey))
	}
	return object
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// object returns an object of the kind, as small as its schema allows.
func (m *maker) object() map[string]any {
	apiVersion, kind := m.kind.ToAPIVersionAndKind()
	made := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": Example}}
	required, _ := m.schema(nil)["required"].([]any)
	if properties, _ := m.schema(nil)["properties"].(map[string]any); properties["spec"] != nil {
		required = append(required, "spec")
	}
	for _, each := range required {
		if name := fmt.Sprint(each); made[name] == nil {
			made[name] = m.smallest(cel.Path{name})
		}
	}
	if spec, _ := made["spec"].(map[string]any); m.kind.Group == "" && kind == "Pod" {
		spec["automountServiceAccountToken"] = false // the name of its volume would differ each time
	}
	return made
}

// put returns a copy of an object with a value at a path, and what is needed around it. Nil means that it is not possible.
func (m *maker) put(object map[string]any, path cel.Path, value any) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	for n := 1; n < len(path); n++ {
		if old, found := At(copied, path[:n]); found && !isEmpty(old) {
			continue
		}
		if copied = With(copied, path[:n], func(any) (any, bool) { return m.smallest(path[:n]), true }); copied == nil {
			return nil
		}
	}
	return With(copied, path, func(any) (any, bool) { return value, true })
}

// quoted matches a value in the message of an API server, and word what can be the name of a field.
var (
	quoted = regexp.MustCompile(`"([^"]+)"`)
	word   = regexp.MustCompile(`\b[a-z][a-zA-Z]+`)
)

// lacking returns the path of the first field that a message about a path names and the object lacks, or nil.
func (m *maker) lacking(object map[string]any, path cel.Path, message string) cel.Path {
	properties, _ := m.schema(path)["properties"].(map[string]any)
	for _, name := range word.FindAllString(message, -1) {
		field := append(slices.Clone(path), name)
		if _, has := At(object, field); !has && properties[name] != nil {
			return field
		}
	}
	return nil
}

// completed returns a copy of an object with what an API server says that it lacks. Nil means that nothing is to be done.
func (m *maker) completed(object map[string]any, status metav1.Status) map[string]any {
	if status.Details == nil {
		return nil
	}
	done := object
	for _, cause := range status.Details.Causes {
		path := pathOf(cause.Field)
		if field := m.lacking(done, path, cause.Message); field != nil {
			path = field
		}
		if value := m.wanted(done, path, cause); len(path) > 0 && value != nil {
			if changed := m.put(done, path, value); changed != nil {
				done = changed
			}
		}
	}
	if len(Difference(done, object, nil)) == 0 {
		return nil
	}
	return done
}

// wanted returns the value that an API server asks for at a path of an object, or nil.
func (m *maker) wanted(object map[string]any, path cel.Path, cause metav1.StatusCause) any {
	old, has := At(object, path)
	for _, list := range []string{"supported values: ", "valid values: "} {
		_, supported, _ := strings.Cut(cause.Message, list)
		if found := quoted.FindStringSubmatch(supported); found != nil {
			return found[1]
		}
	}
	switch {
	case cause.Type == metav1.CauseTypeFieldValueRequired, cause.Type == metav1.CauseTypeFieldValueInvalid && !has:
		return m.smallest(path)
	case cause.Type == metav1.CauseTypeFieldValueInvalid:
		if next := slices.Index(textForms(), fmt.Sprint(old)) + 1; next > 0 && next < len(textForms()) {
			return textForms()[next]
		}
	}
	return nil
}

// step matches a field, an index or a key in the path of a field.
var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// pathOf returns the Path of a field as an API server writes it.
func pathOf(field string) cel.Path {
	var path cel.Path
	for _, each := range step.FindAllString(field, -1) {
		inner := strings.Trim(each, "[]")
		if n, err := strconv.Atoi(inner); err == nil && inner != each {
			path = append(path, n)
		} else {
			path = append(path, inner)
		}
	}
	return path
}
