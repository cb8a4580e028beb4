package vary

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	objects "github.com/admissiontest/admissiontest/internal/object"
)

// maker makes objects of a kind from the OpenAPI v3 document of an API server.
type maker struct {
	document map[string]any
	kind     schema.GroupVersionKind
}

// schema returns the schema at a path, or nil.
func (m *maker) schema(path cel.Path) map[string]any {
	return kinds.SchemaAt(m.document, m.kind, path)
}

// Example is a name, the value of a label, an image. Labels and selectors have exampleKey, so that they fit each other.
const (
	Example    = "example"
	exampleKey = "app"
)

// smallest returns a value for a path: with what the schema requires, and labels and selectors that fit each other.
func (m *maker) smallest(path cel.Path) any {
	at := m.schema(path)
	if value := at["default"]; value != nil && value != "" && !isEmpty(value) {
		return runtime.DeepCopyJSONValue(value)
	}
	if enum, _ := at["enum"].([]any); len(enum) > 0 {
		return enum[0]
	}
	name := kinds.TypeAt(m.document, m.kind, path)
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
		return []any{m.smallest(path.Then(0))}
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
		object[fmt.Sprint(each)] = m.smallest(path.Then(fmt.Sprint(each)))
	}
	if at["additionalProperties"] != nil {
		object[exampleKey] = m.smallest(path.Then(exampleKey))
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
	return Put(copied, path, value)
}

// completed returns a copy of an object with the values that an API server says it lacks, or that it asks for. Nil means that nothing is
// to be done.
func (m *maker) completed(object map[string]any, status metav1.Status) map[string]any {
	if status.Details == nil {
		return nil
	}
	done := object
	for _, cause := range status.Details.Causes {
		var path cel.Path
		for _, step := range objects.SplitPath(cause.Field) {
			if n, err := strconv.Atoi(step); err == nil {
				path = append(path, n)
			} else {
				path = append(path, step)
			}
		}
		if len(path) == 0 {
			continue
		}
		var value any
		_, has := At(done, path)
		if _, supported, is := strings.Cut(cause.Message, `supported values: "`); is {
			value, _, _ = strings.Cut(supported, `"`)
		} else if cause.Type == metav1.CauseTypeFieldValueRequired || cause.Type == metav1.CauseTypeFieldValueInvalid && !has {
			value = m.smallest(path)
		} else {
			continue
		}
		if changed := m.put(done, path, value); changed != nil {
			done = changed
		}
	}
	if len(Difference(done, object, nil)) == 0 {
		return nil
	}
	return done
}
