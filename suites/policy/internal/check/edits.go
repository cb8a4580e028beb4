package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admissiontest/admissiontest/internal/fields"
)

// constants are the values in expressions, as values that objects can have.
type constants struct {
	texts   []string
	numbers []any
}

// mostConstants limits the values that are tried at one path.
const mostConstants = 12

// constantsIn returns the constants of expressions: of a number also its neighbours, and of a pattern what matches it.
func constantsIn(texts []string) (found constants) {
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" && !slices.Contains(found.texts, text) {
				found.texts = append(found.texts, text)
			}
		}
	}
	for _, each := range parseAll(texts) {
		each.visit(func(part ast.Expr) {
			if call, ok := memberCall(part); ok && len(call.Args()) == 1 {
				text, isText := literal(call.Args()[0])
				switch {
				case !isText:
				case call.FunctionName() == "startsWith":
					add(text+anExample, text)
				case call.FunctionName() == "endsWith":
					add(anExample+text, text)
				case call.FunctionName() == "contains":
					add(text, anExample+text+anExample)
				case call.FunctionName() == "matches":
					add(matching(text, firstCharacters))
				}
			}
			if part.Kind() != ast.LiteralKind {
				return
			}
			switch value := part.AsLiteral().(type) {
			case types.String:
				add(string(value))
			case types.Int:
				found.number(int64(value))
			case types.Double:
				found.number(int64(value))
			}
		})
	}
	return found
}

func (c *constants) number(n int64) {
	for _, near := range []any{n, n - 1, n + 1} {
		if !slices.Contains(c.numbers, near) {
			c.numbers = append(c.numbers, near)
		}
	}
}

// ofParams adds the values in the params of a policy.
func (c *constants) ofParams(s Subject, p Policy) {
	c.texts = append(c.texts, s.constantsOfParams(p)...)
	for _, text := range c.texts {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			c.number(n)
		}
	}
	for _, each := range s.params() {
		for _, path := range paths(each.object.Object, nil) {
			switch value, _ := at(each.object.Object, path); value := value.(type) {
			case int64:
				c.number(value)
			case float64:
				c.number(int64(value))
			}
		}
	}
}

// reading is a path that an expression reads, with the constants that its value may be compared with.
type reading struct {
	path Path
	constants
	old bool // the expression names oldObject
}

// readings returns what the policies read of objects.
func (s Subject) readings() []reading {
	var all []reading
	for _, p := range s.List() {
		var variables []string
		for _, text := range p.variables() {
			variables = append(variables, text)
		}
		slices.Sort(variables)
		for _, text := range p.expressions() {
			found, _ := p.reads([]string{text}, "object", "oldObject")
			known := constantsIn(append([]string{text}, variables...))
			known.ofParams(s, p)
			for _, one := range found {
				for _, path := range one.paths {
					all = append(all, reading{path, known, Names(text, "oldObject")})
				}
			}
		}
	}
	for _, key := range s.keys() {
		all = append(all, reading{Path{"metadata", key.in, key.key}, constants{texts: key.values}, false})
	}
	return all
}

// edits returns the object with one change each, at a path that is read.
func (m *maker) edits(object map[string]any, all []reading) []map[string]any {
	var edited []map[string]any
	seen := map[string]bool{}
	add := func(path Path, change string, made map[string]any) {
		if key := path.String() + change; made != nil && !seen[key] {
			seen[key] = true
			edited = append(edited, made)
		}
	}
	for _, one := range all {
		for _, path := range m.concrete(object, one) {
			if len(path) == 0 || path.In(identity()[:2]) || slices.Equal(path, Path{"metadata"}) {
				continue
			}
			old, found := at(object, path)
			if found && !path.In(identity()) {
				add(path, " -", with(object, path, remove))
			}
			values := m.values(path, one.constants)
			if text, ok := old.(string); ok && m.schema(path)["type"] == "string" {
				values = append(values, joined(text, one.texts)...)
			}
			for _, value := range values {
				if !found || !equality.Semantic.DeepEqual(old, value) {
					add(path, fmt.Sprintf("=%v", value), m.put(object, path, value))
				}
			}
		}
	}
	return edited
}

// joined returns a string with each constant that ends or begins with a separator before or after it.
func joined(text string, texts []string) (all []any) {
	for _, each := range texts[:min(len(texts), mostConstants)] {
		if each == "" {
			continue
		}
		if strings.ContainsAny(each[len(each)-1:], separators) {
			all = append(all, each+text)
		}
		if strings.ContainsAny(each[:1], separators) {
			all = append(all, text+each)
		}
	}
	return all
}

// concrete returns the paths that a reading can be about in an object: of a list the first element, and of a map the keys
// that it has, and those that the expression may mean.
func (m *maker) concrete(object map[string]any, one reading) []Path {
	found := []Path{{}}
	for _, next := range one.path {
		var longer []Path
		for _, path := range found {
			steps := []any{next}
			if next == any(each{}) {
				steps = []any{0}
				if m.schema(path)["additionalProperties"] != nil {
					old, _ := at(object, path)
					has, _ := old.(map[string]any)
					steps = nil
					for _, key := range slices.Concat(sortedKeys(has), one.texts[:min(len(one.texts), mostConstants)]) {
						if aKey.MatchString(key) && !slices.Contains(steps, any(key)) {
							steps = append(steps, key)
						}
					}
				}
			}
			for _, s := range steps {
				if longer = append(longer, append(slices.Clone(path), s)); m.schema(longer[len(longer)-1]) == nil {
					longer = longer[:len(longer)-1]
				}
			}
		}
		found = longer[:min(len(longer), mostPaths)]
	}
	return found
}

// values returns the values that are tried at a path.
func (m *maker) values(path Path, known constants) []any {
	schema := m.schema(path)
	smallest := m.smallest(path)
	all := []any{smallest}
	texts := known.texts[:min(len(known.texts), mostConstants)]
	numbers := known.numbers[:min(len(known.numbers), mostConstants)]
	enum, _ := schema["enum"].([]any)
	switch {
	case len(enum) > 0:
		all = enum
	case fields.TypeAt(m.document, m.kind, path) == quantityType:
		all = append(quantities(texts), "1", "1m", "1000Ti")
	case schema["type"] == "boolean":
		all = []any{true, false}
	case schema["type"] == "integer", schema["type"] == "number":
		all = slices.Concat(numbers, []any{int64(0), int64(1), int64(1000000)})
	case schema["type"] == "string", schema["format"] == "int-or-string", schema["type"] == nil && schema["properties"] == nil:
		for _, text := range texts {
			all = append(all, text)
		}
		if pattern, ok := schema["pattern"].(string); ok {
			all = append(all, matching(pattern, otherCharacters))
		}
		if schema["type"] != "string" {
			all = append(all, numbers...)
		} else if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "/") }) {
			all = append(all, aHost) // such as an image of a registry that no policy knows
		}
	case schema["type"] == "array":
		items := m.schema(append(slices.Clone(path), 0))
		for _, text := range texts {
			if items["type"] == "string" {
				all = append(all, []any{text})
			}
		}
		all = append(all, []any{})
	case schema["additionalProperties"] != nil:
		all = append(all, map[string]any{})
	}
	return all
}

// quantities returns constants that are quantities, and their double.
func quantities(texts []string) []any {
	var all []any
	for _, text := range texts {
		if q, err := resource.ParseQuantity(text); err == nil {
			double := q.DeepCopy()
			double.Add(q)
			all = append(all, strings.TrimSpace(text), double.String())
		}
	}
	return all
}
