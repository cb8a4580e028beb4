package check

import (
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/fields"
)

// maker makes objects of a kind from its schema.
type maker struct {
	document map[string]any
	kind     schema.GroupVersionKind
	schemas  map[string]map[string]any
}

// schema returns the schema at a path, or nil.
func (m *maker) schema(path Path) map[string]any {
	known, ok := m.schemas[path.String()]
	if !ok {
		known = fields.SchemaAt(m.document, m.kind, path)
		m.schemas[path.String()] = known
	}
	return known
}

// anExample is a name, the value of a label, an image. Labels and selectors have exampleKey, so that they fit each other.
// AHost is an image that is not from the registry of Docker.
const (
	anExample  = "example"
	exampleKey = "app"
	aHost      = "example.com/example"
)

// textForms are texts that formats ask for, tried one after the other.
func textForms() []string {
	return []string{anExample, aHost, "/example", "https://example.com", "10.0.0.1", "* * * * *", "1", "2030-01-01T00:00:00Z"}
}

// smallest returns a value for a path: with what the schema requires, and labels and selectors that fit each other.
func (m *maker) smallest(path Path) any {
	at := m.schema(path)
	if value := at["default"]; value != nil && value != "" && !isEmpty(value) {
		return runtime.DeepCopyJSONValue(value)
	}
	if enum, _ := at["enum"].([]any); len(enum) > 0 {
		return enum[0]
	}
	name := fields.TypeAt(m.document, m.kind, path)
	switch {
	case name == quantityType:
		return "1"
	case strings.HasSuffix(name, ".LabelSelector"):
		return map[string]any{"matchLabels": map[string]any{exampleKey: anExample}}
	case strings.HasSuffix(name, ".ObjectMeta"):
		return map[string]any{"labels": map[string]any{exampleKey: anExample}}
	case at["format"] == "int-or-string" || at["x-kubernetes-int-or-string"] == true:
		return int64(1)
	}
	switch at["type"] {
	case "boolean":
		return true
	case "integer", "number":
		if least, ok := at["minimum"].(float64); ok && least > 1 {
			return int64(least)
		}
		return int64(1)
	case "array":
		return []any{m.smallest(append(slices.Clone(path), 0))}
	case "string":
		return m.text(at)
	}
	object := map[string]any{}
	required, _ := at["required"].([]any)
	for _, each := range required {
		object[fmt.Sprint(each)] = m.smallest(append(slices.Clone(path), fmt.Sprint(each)))
	}
	if values := at["additionalProperties"]; values != nil {
		object[exampleKey] = m.smallest(append(slices.Clone(path), exampleKey))
	}
	return object
}

func (m *maker) text(at map[string]any) string {
	switch pattern, _ := at["pattern"].(string); {
	case pattern != "":
		return matching(pattern, firstCharacters)
	case at["format"] == "date-time":
		return "2030-01-01T00:00:00Z"
	}
	least, _ := at["minLength"].(float64)
	return anExample + strings.Repeat("x", min(max(0, int(least)-len(anExample)), 1000))
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
	made := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": anExample}}
	required, _ := m.schema(nil)["required"].([]any)
	if properties, _ := m.schema(nil)["properties"].(map[string]any); properties["spec"] != nil {
		required = append(required, "spec")
	}
	for _, each := range required {
		if name := fmt.Sprint(each); made[name] == nil {
			made[name] = m.smallest(Path{name})
		}
	}
	return made
}

// put returns a copy of an object with a value at a path, and what is needed around it. Nil means that it is not possible.
func (m *maker) put(object map[string]any, path Path, value any) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	for n := 1; n < len(path); n++ {
		if old, found := at(copied, path[:n]); found && !isEmpty(old) {
			continue
		}
		parent := m.smallest(path[:n])
		if _, isMap := parent.(map[string]any); isMap && m.schema(path[:n])["additionalProperties"] != nil {
			parent = map[string]any{}
		}
		if copied = with(copied, path[:n], func(any) (any, bool) { return parent, true }); copied == nil {
			return nil
		}
	}
	return with(copied, path, func(any) (any, bool) { return runtime.DeepCopyJSONValue(value), true })
}

// quoted matches a value in the message of an API server, and word what can be the name of a field.
var (
	quoted = regexp.MustCompile(`"([^"]+)"`)
	word   = regexp.MustCompile(`\b[a-z][a-zA-Z]+`)
)

// lacking returns the path of the first field that a message about a path names and the object lacks, or nil.
func (m *maker) lacking(object map[string]any, path Path, message string) Path {
	properties, _ := m.schema(path)["properties"].(map[string]any)
	for _, name := range word.FindAllString(message, -1) {
		field := append(slices.Clone(path), name)
		if _, has := at(object, field); !has && properties[name] != nil {
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
		old, has := at(done, path)
		var value any
		_, supported, lists := strings.Cut(cause.Message, "supported values: ")
		if !lists {
			_, supported, lists = strings.Cut(cause.Message, "valid values: ")
		}
		switch found := quoted.FindStringSubmatch(supported); {
		case len(path) == 0:
			continue
		case lists && found != nil:
			value = found[1]
		case cause.Type == metav1.CauseTypeFieldValueRequired, cause.Type == metav1.CauseTypeFieldValueInvalid && !has:
			value = m.smallest(path)
		case cause.Type == metav1.CauseTypeFieldValueInvalid:
			next := slices.Index(textForms(), fmt.Sprint(old)) + 1
			if next == 0 || next == len(textForms()) {
				continue
			}
			value = textForms()[next]
		default:
			continue
		}
		if changed := m.put(done, path, value); changed != nil {
			done = changed
		}
	}
	if len(difference(done, object, nil)) == 0 {
		return nil
	}
	return done
}

// step matches a field, an index or a key in the path of a field.
var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// pathOf returns the Path of a field as an API server writes it.
func pathOf(field string) Path {
	var path Path
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

// The characters that are chosen for a class of characters, if it has them.
const (
	firstCharacters = "a1A-"
	otherCharacters = "b2B_"
)

// matching returns a string that a regular expression matches, if it is a simple one, and an example otherwise.
func matching(pattern, characters string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return anExample
	}
	text := sampleOf(parsed, characters)
	if ok, err := regexp.MatchString(pattern, text); err != nil || !ok || text == "" {
		return anExample
	}
	return text
}

func sampleOf(r *syntax.Regexp, characters string) string {
	switch r.Op {
	case syntax.OpLiteral:
		return string(r.Rune)
	case syntax.OpCharClass:
		for _, wanted := range characters {
			for i := 0; i+1 < len(r.Rune); i += 2 {
				if r.Rune[i] <= wanted && wanted <= r.Rune[i+1] {
					return string(wanted)
				}
			}
		}
		if len(r.Rune) > 0 {
			return string(r.Rune[0])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpConcat, syntax.OpCapture:
		var text strings.Builder
		for _, sub := range r.Sub {
			text.WriteString(sampleOf(sub, characters))
		}
		return text.String()
	case syntax.OpAlternate, syntax.OpPlus:
		return sampleOf(r.Sub[0], characters)
	case syntax.OpRepeat:
		return strings.Repeat(sampleOf(r.Sub[0], characters), r.Min)
	}
	return ""
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys(of map[string]any) []string { return slices.Sorted(maps.Keys(of)) }
