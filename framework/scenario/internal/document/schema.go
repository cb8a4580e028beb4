package document

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// MaxProblems is the largest number of problems that are reported for a file.
const MaxProblems = 100

// Schema checks documents.
type Schema struct {
	compiler *jsonschema.Compiler
	root     *jsonschema.Schema
	// lock protects compiler.
	lock sync.Mutex
}

// NewSchema compiles a JSON Schema. The comment of a part goes on after "x is wrong; expected", for a
// pattern, or after "x", for "not" and false: "what is wrong; what was expected; what to do".
func NewSchema(text []byte) (*Schema, error) {
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the JSON Schema: %w", err)
	}
	const name = "schema.json"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, decoded); err != nil {
		return nil, fmt.Errorf("read the JSON Schema: %w", err)
	}
	root, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile the JSON Schema: %w", err)
	}
	return &Schema{compiler: compiler, root: root}, nil
}

// Check returns what is wrong with a document.
func (s *Schema) Check(document *Node) []Problem {
	var invalid *jsonschema.ValidationError
	if !errors.As(s.root.Validate(document.Plain()), &invalid) {
		return nil
	}
	c := &invalidDocument{Schema: s, document: document, misspelt: map[Path]bool{}, wrong: map[*Node]bool{}}
	c.findUnknown(invalid)
	c.report(invalid)
	return c.problems
}

// invalidDocument makes Problems of the errors of a document.
type invalidDocument struct {
	*Schema
	document *Node
	// misspelt are the maps with unknown fields: such a field is probably the one that is missing. Wrong are values of a wrong
	// kind, of which nothing else is reported.
	misspelt map[Path]bool
	wrong    map[*Node]bool
	problems []Problem
}

func (c *invalidDocument) fail(n *Node, message, hint string) {
	c.problems = append(c.problems, Problem{n, message, hint})
}

// at returns the value that an error is about, where it begins, and its path.
func (c *invalidDocument) at(e *jsonschema.ValidationError) (n, begin *Node, where Path) {
	n, begin = c.document, c.document
	for _, step := range e.InstanceLocation {
		if index, err := strconv.Atoi(step); err == nil && n.Kind == KindList {
			where = where.Item(index)
		} else {
			where = where.Field(step)
		}
		n, begin = n.Step(step)
	}
	return n, begin, where
}

func (c *invalidDocument) findUnknown(e *jsonschema.ValidationError) {
	if _, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		_, _, where := c.at(e)
		c.misspelt[where] = true
	}
	for _, cause := range e.Causes {
		c.findUnknown(cause)
	}
}

// report reports an error of the schema.
func (c *invalidDocument) report(e *jsonschema.ValidationError) {
	n, begin, where := c.at(e)
	if c.wrong[n] {
		return
	}
	is := fmt.Sprintf("%s is %s; expected ", where, n.Describe())
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		if form := c.schema(e.SchemaURL); form.Pattern != nil && n.Value != nil && !form.Pattern.MatchString(n.Raw) {
			c.wrong[n] = true
			c.fail(n, is+form.Comment, "") // quotes alone would not help
			return
		}
		c.wrongKind(n, is, k.Want)
	case *kind.AdditionalProperties:
		c.unknownFields(e.SchemaURL, n, where)
	case *kind.Required:
		c.missing(n, where, k.Missing)
	case *kind.OneOf:
		c.oneOf(e, k, n, where)
	case *kind.AnyOf:
		c.anyOf(e, n, is)
	case *kind.Const:
		if comment := c.schema(e.SchemaURL).Comment; comment != "" {
			c.fail(n, is+fmt.Sprint(k.Want), comment)
			return
		}
		c.notIn([]any{k.Want}, n, is, e.InstanceLocation)
	case *kind.Enum:
		c.notIn(k.Want, n, is, e.InstanceLocation)
	case *kind.Pattern:
		c.fail(n, is+c.schema(e.SchemaURL).Comment, "")
	case *kind.MinItems, *kind.MinProperties, *kind.MinLength:
		c.fail(n, fmt.Sprintf("%s is empty; expected a value", where), "remove it, or say what is expected")
	case *kind.Minimum:
		c.fail(n, is+"at least "+k.Want.RatString(), "")
	case *kind.Maximum:
		c.fail(n, is+"at most "+k.Want.RatString(), "")
	case *kind.Not:
		c.fail(n, fmt.Sprintf("%s %s", where, c.schema(e.SchemaURL).Comment), "")
	case *kind.FalseSchema:
		of := max(strings.LastIndex(e.SchemaURL, "/properties/"), strings.LastIndex(e.SchemaURL, "/patternProperties/"))
		c.fail(begin, fmt.Sprintf("%s %s", where, c.schema(e.SchemaURL[:of]).Comment), "")
	case *kind.DependentRequired:
		c.fail(n.Get(k.Prop), fmt.Sprintf("%s has %s without %s; expected both", where, k.Prop, strings.Join(k.Missing, " and ")), "")
	default:
		if len(e.Causes) == 0 {
			c.fail(n, fmt.Sprintf("%sa value that the JSON Schema allows (%s)", is, strings.Join(k.KeywordPath(), "/")), "")
		}
		for _, cause := range e.Causes {
			c.report(cause)
		}
	}
}

// wrongKind reports a value that is of none of some JSON types.
func (c *invalidDocument) wrongKind(n *Node, is string, types []string) {
	c.wrong[n] = true
	var expected []string
	for _, one := range types {
		if name := string(kindOf(one)); !slices.Contains(expected, name) {
			expected = append(expected, name)
		}
	}
	hint, first := "", kindOf(types[0])
	switch {
	case n.Kind == KindNull:
		hint = "give it a value or remove the field"
	case len(expected) > 1:
	case first == KindText && n.Value != nil:
		hint = fmt.Sprintf("put it in quotes: %q", n.Raw)
	case n.Kind == KindText && (first == KindBool || first == KindInteger):
		hint = "write it without quotes"
	}
	c.fail(n, is+strings.Join(expected, " or "), hint)
}

// kindOf returns the Kind of a JSON type.
func kindOf(jsonType string) Kind {
	kinds := map[string]Kind{"object": KindMapping, "array": KindList, "string": KindText, "boolean": KindBool, "integer": KindInteger, "number": KindNumber}
	return kinds[jsonType]
}

// notIn reports a value that is none of some values.
func (c *invalidDocument) notIn(values []any, n *Node, is string, location []string) {
	allowed := texts(values)
	if len(location) == 0 || n.Kind != KindText {
		c.fail(n, is+oneOf(allowed), "")
		return
	}
	hint := DidYouMean(n.Raw, allowed)
	if len(allowed) == 1 && hint == "" {
		hint = fmt.Sprintf("write %q", allowed[0])
	}
	c.fail(n, fmt.Sprintf("unknown %s %s; expected %s", location[len(location)-1], Quote(n.Raw), oneOf(allowed)), hint)
}

func texts(values []any) []string {
	var out []string
	for _, value := range values {
		out = append(out, fmt.Sprint(value))
	}
	return out
}

func oneOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return "one of " + strings.Join(names, ", ")
}

// missing reports fields that a map must have.
func (c *invalidDocument) missing(n *Node, where Path, names []string) {
	if c.misspelt[where] {
		return
	}
	for _, name := range names {
		c.fail(n, fmt.Sprintf("%s has no %s; expected one", where, name), fmt.Sprintf("add %q", name+":"))
	}
}

// oneOf reports a value that matches none of several schemas, or two.
func (c *invalidDocument) oneOf(e *jsonschema.ValidationError, k *kind.OneOf, n *Node, where Path) {
	var alternatives, types []string
	var fits []*jsonschema.ValidationError
	for _, branch := range e.Causes {
		switch of := innermost(branch).ErrorKind.(type) {
		case *kind.Type:
			if len(branch.InstanceLocation) == len(e.InstanceLocation) {
				types = append(types, of.Want...)
				continue
			}
		case *kind.Required:
			alternatives = append(alternatives, of.Missing...)
		}
		fits = append(fits, branch)
	}
	var present []string
	for _, match := range k.Subschemas {
		present = append(present, c.schema(e.SchemaURL).OneOf[match].Required...)
	}
	exclusive := len(present) > 0
	switch {
	case (exclusive || len(alternatives) > 1) && c.misspelt[where]:
	case exclusive:
		c.fail(n, fmt.Sprintf("%s has %s; expected only one of them", where, strings.Join(present, " and ")), "remove one, or write one entry for each")
	case len(alternatives) > 1:
		c.fail(n, fmt.Sprintf("%s has none of %s; expected one", where, strings.Join(alternatives, ", ")), "")
	case len(fits) > 0:
		c.report(fits[0])
	default:
		c.wrongKind(n, fmt.Sprintf("%s is %s; expected ", where, n.Describe()), types)
	}
}

// innermost follows references.
func innermost(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) == 1 {
		if _, ok := e.ErrorKind.(*kind.Reference); !ok {
			break
		}
		e = e.Causes[0]
	}
	return e
}

// anyOf reports a string that is no value of a list and has not one of some forms.
func (c *invalidDocument) anyOf(e *jsonschema.ValidationError, n *Node, is string) {
	var expected, allowed []string
	for _, branch := range e.Causes {
		switch k := branch.ErrorKind.(type) {
		case *kind.Enum:
			allowed = texts(k.Want)
			expected = append(expected, oneOf(allowed))
		case *kind.Pattern:
			expected = append(expected, c.schema(branch.SchemaURL).Comment)
		}
	}
	c.fail(n, is+strings.Join(expected, ", or "), DidYouMean(n.Raw, allowed))
}

// unknownFields reports the fields of a map that its schema does not have.
func (c *invalidDocument) unknownFields(url string, n *Node, where Path) {
	schema := c.schema(url)
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, field := range n.Fields {
		if schema.Properties[field.Name] != nil {
			continue
		}
		if len(c.problems) > MaxProblems {
			c.fail(field.Key, "", "") // it is only counted
			continue
		}
		expected, hint := "a field of "+where.String(), DidYouMean(field.Name, names)
		if hint == "" {
			expected, hint = oneOf(names), below(schema, field.Name)
		}
		c.fail(field.Key, fmt.Sprintf("unknown field %s in %s; expected %s", Quote(field.Name), where, expected), hint)
	}
}

// schema returns the part of the schema that an error names.
func (s *Schema) schema(url string) *jsonschema.Schema {
	s.lock.Lock()
	defer s.lock.Unlock()
	part, err := s.compiler.Compile(url)
	if err != nil {
		return &jsonschema.Schema{}
	}
	return part
}

// below returns a hint with the fields whose maps, or maps in a list, have a field of that name: "then" of a step for
// "allowed", which is not indented enough.
func below(schema *jsonschema.Schema, name string) string {
	var found []string
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		of := schema.Properties[field]
		for _, one := range []*jsonschema.Schema{of, of.Items2020} {
			if one != nil && one.Ref != nil && one.Ref.Properties[name] != nil {
				found = append(found, field)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("it is a field of %s: move it there", strings.Join(found, " and "))
}
