package check

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Expressions returns the expressions of a list of the policy that decide: of matchConditions, variables, validations,
// auditAnnotations.
func (p Policy) Expressions(list string) []string {
	return p.texts(list, "expression", "valueExpression")
}

// Messages returns the messages of the validations.
func (p Policy) Messages() []string { return p.texts("validations", "message") }

// texts returns the strings in fields of the items of a list.
func (p Policy) texts(list string, names ...string) []string {
	items, _, _ := unstructured.NestedSlice(p.Object, "spec", list)
	var found []string
	for _, item := range items {
		fields, _ := item.(map[string]any)
		for _, name := range names {
			if text, ok := fields[name].(string); ok {
				found = append(found, text)
			}
		}
	}
	return found
}

// expressions returns all expressions of the policy, also of its messages.
func (p Policy) expressions() []string { return expressionsIn(p.Object["spec"]) }

func expressionsIn(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for _, path := range paths(value, nil) {
			text, _ := at(value, path)
			switch path[len(path)-1] {
			case "expression", "valueExpression", "messageExpression":
				if text, ok := text.(string); ok {
					found = append(found, text)
				}
			}
		}
	case []any:
		for _, item := range value {
			found = append(found, expressionsIn(item)...)
		}
	}
	return found
}

// literal is a string in an expression.
var literal = regexp.MustCompile(`'([^'\\]*)'|"([^"\\]*)"`)

// literals returns the strings in expressions, each once. Strings with escapes are left out.
func literals(expressions []string) []string {
	var found []string
	for _, each := range expressions {
		for _, match := range literal.FindAllStringSubmatch(each, -1) {
			if text := match[1] + match[2]; text != "" && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

// Names reports whether an expression names a variable, outside of strings.
func Names(expression, variable string) bool {
	return regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(variable) + `\b`).MatchString(literal.ReplaceAllString(expression, "''"))
}

// constant is a string that is only a part of what it is compared with.
type constant struct {
	open string // the function: startsWith, endsWith or contains
	text string
	user bool // it is compared with the name of the user
}

// openFunction is a call of a function that compares with a part.
var openFunction = regexp.MustCompile(`([\w.]*)\.(startsWith|endsWith|contains)\(\s*(?:'([^'\\]+)'|"([^"\\]+)"|[\w.]+)\s*\)`)

// separators end a name: after them, another name begins.
const separators = "/-.:@ "

// openConstants returns the constants of the policy that do not end in a separator, each once. What is compared with a
// variable can be any string of the params.
func (p Policy) openConstants(params []string) []constant {
	var found []constant
	for _, each := range p.expressions() {
		for _, match := range openFunction.FindAllStringSubmatch(each, -1) {
			texts := []string{match[3] + match[4]}
			if texts[0] == "" {
				texts = params
			}
			for _, text := range texts {
				c := constant{open: match[2], text: text, user: strings.HasSuffix(match[1], "userInfo.username")}
				if !c.closed() && !slices.Contains(found, c) {
					found = append(found, c)
				}
			}
		}
	}
	return found
}

// closed reports whether a constant ends in a separator where the function is open.
func (c constant) closed() bool {
	last, first := strings.ContainsAny(c.text[len(c.text)-1:], separators), strings.ContainsAny(c.text[:1], separators)
	return c.open == "startsWith" && last || c.open == "endsWith" && first || c.open == "contains" && (first || last)
}

// constantsOfParams returns the strings of the params of a policy.
func (s Subject) constantsOfParams(p Policy) []string {
	var found []string
	for _, each := range s.params() {
		for _, path := range paths(each.object.Object, nil) {
			value, _ := at(each.object.Object, path)
			if text, ok := value.(string); ok && text != "" && path[0] != "metadata" && each.policy.GetName() == p.GetName() && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

// inside returns the value with a constant replaced, and with more around the constant on the side that the function
// leaves open. Ok is false if the value does not have the constant there.
func (c constant) inside(value string) (replaced, near string, ok bool) {
	other := strings.Repeat("x", len(c.text))
	switch {
	case c.open == "startsWith" && strings.HasPrefix(value, c.text):
		return other + value[len(c.text):], c.text + "x" + value[len(c.text):], true
	case c.open == "endsWith" && strings.HasSuffix(value, c.text):
		head := strings.TrimSuffix(value, c.text)
		return head + other, head + "x" + c.text, true
	case c.open == "contains" && strings.Contains(value, c.text):
		return strings.Replace(value, c.text, other, 1), strings.Replace(value, c.text, "x"+c.text+"x", 1), true
	}
	return "", "", false
}

// keyed is a label or annotation that decides whether a policy matches an object.
type keyed struct {
	in     string // labels or annotations
	key    string
	values []string
}

var (
	// notTheObject are variables whose labels the requester does not write with the object.
	notTheObject = regexp.MustCompile(`\b(namespaceObject|params|oldObject)\.[\w.?]*`)
	mapOfObject  = regexp.MustCompile(`object\.metadata\.\??(labels|annotations)`)
	selectedKey  = regexp.MustCompile(`object\.metadata\.\??(labels|annotations)\.\??([A-Za-z_]\w*)(\(?)`)
	aKey         = regexp.MustCompile(`^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// keys returns the labels and annotations of objects that objectSelectors and matchConditions name. A string in an
// expression that reads labels may be one of their keys.
func (s Subject) keys() []keyed {
	var found []keyed
	add := func(k keyed) {
		k.values = append(k.values, "true", "contract-other")
		if aKey.MatchString(k.key) && !slices.ContainsFunc(found, func(known keyed) bool { return known.in == k.in && known.key == k.key }) {
			found = append(found, k)
		}
	}
	for _, m := range s.Policies {
		for _, at := range [][]string{{"spec", "matchConstraints", "objectSelector"}, {"spec", "matchResources", "objectSelector"}} {
			selector, _, _ := unstructured.NestedMap(m.Object, at...)
			labels, _, _ := unstructured.NestedStringMap(selector, "matchLabels")
			for _, key := range slices.Sorted(maps.Keys(labels)) {
				add(keyed{"labels", key, []string{labels[key]}})
			}
			requirements, _, _ := unstructured.NestedSlice(selector, "matchExpressions")
			for _, each := range requirements {
				fields, _ := each.(map[string]any)
				values, _, _ := unstructured.NestedStringSlice(fields, "values")
				key, _, _ := unstructured.NestedString(fields, "key")
				add(keyed{"labels", key, values})
			}
		}
	}
	for _, p := range s.List() {
		all := p.Expressions("matchConditions")
		values := literals(all)
		for _, each := range all {
			read := notTheObject.ReplaceAllString(each, "")
			for _, match := range selectedKey.FindAllStringSubmatch(read, -1) {
				if match[3] == "" {
					add(keyed{match[1], match[2], values})
				}
			}
			for _, match := range mapOfObject.FindAllStringSubmatch(read, -1) {
				for _, key := range literals([]string{each}) {
					add(keyed{match[1], key, values})
				}
			}
		}
	}
	return found
}
