package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// Expressions returns the expressions of a list of the policy that decide: of matchConditions, variables, validations,
// auditAnnotations.
func (p Policy) Expressions(list string) []string {
	var found []string
	for _, each := range p.expressionsAt() {
		if each.path[1] == any(list) && each.path[len(each.path)-1] != any("messageExpression") {
			found = append(found, each.text)
		}
	}
	return found
}

// Messages returns the message of each validation, which is empty if it has none.
func (p Policy) Messages() []string {
	var found []string
	for _, each := range p.spec.Validations {
		found = append(found, each.Message)
	}
	return found
}

// deciding returns the expressions that decide. Variables decide where these use them.
func (p Policy) deciding() []string {
	return slices.Concat(p.Expressions("matchConditions"), p.Expressions("validations"))
}

// expressions returns all expressions of the policy, also of its messages.
func (p Policy) expressions() []string {
	var found []string
	for _, each := range p.expressionsAt() {
		found = append(found, each.text)
	}
	return found
}

// textAt is an expression with its path in the policy.
type textAt struct {
	path cel.Path
	text string
}

func (p Policy) expressionsAt() []textAt {
	var found []textAt
	for _, path := range vary.Paths(p.Object["spec"], cel.Path{"spec"}) {
		switch path[len(path)-1] {
		case "expression", "valueExpression", "messageExpression":
			if text, ok := valueAt[string](p.Object, path); ok {
				found = append(found, textAt{path, text})
			}
		}
	}
	return found
}

// variables returns the expressions of the variables, by name.
func (p Policy) variables() map[string]string {
	found := map[string]string{}
	for _, each := range p.spec.Variables {
		found[each.Name] = each.Expression
	}
	return found
}

// reads returns what expressions of the policy read of variables: of object, or of oldObject.
func (p Policy) reads(texts []string, roots ...string) *cel.Reader {
	return cel.NewReader(p.variables(), texts, roots...)
}

// IsExpression reports whether a message is an expression that joins strings and what it reads: clients get it as it is.
func IsExpression(message string) bool {
	found := false
	cel.Visit(message, func(part ast.Expr) {
		if part.Kind() != ast.CallKind || part.AsCall().FunctionName() != operators.Add {
			return
		}
		ast.PreOrderVisit(part, ast.NewExprVisitor(func(part ast.Expr) {
			found = found || part.Kind() == ast.IdentKind && slices.Contains([]string{"object", "oldObject", "params", "request", "namespaceObject", "variables"}, part.AsIdent())
		}))
	})
	return found
}

// constant is a string that is only a part of what it is compared with.
type constant struct {
	open string // the function: startsWith, endsWith or contains
	text string
	user bool // it is compared with the name of the user
}

// separators end a name: after them, another name begins.
const separators = "/-.:@ "

// openConstants returns the constants of the policy that do not end in a separator, each once. What is compared with a
// variable can be any of the operands.
func (p Policy) openConstants(operands []string) []constant {
	var found []constant
	for _, each := range p.expressions() {
		cel.Visit(each, func(part ast.Expr) {
			call := part.AsCall() // of another part, it is none
			if !call.IsMemberFunction() || len(call.Args()) != 1 || !slices.Contains([]string{"startsWith", "endsWith", "contains"}, call.FunctionName()) {
				return
			}
			texts := operands
			if text, ok := cel.Literal(call.Args()[0]); ok {
				texts = []string{text}
			}
			for _, text := range texts {
				c := constant{open: call.FunctionName(), text: text, user: isUsername(call.Target())}
				if text != "" && !c.closed() && !slices.Contains(found, c) {
					found = append(found, c)
				}
			}
		})
	}
	return found
}

// isUsername reports whether a part of an expression is the name of the user.
func isUsername(part ast.Expr) bool {
	if part.Kind() != ast.SelectKind || part.AsSelect().FieldName() != "username" {
		return false
	}
	info := part.AsSelect().Operand()
	return info.Kind() == ast.SelectKind && info.AsSelect().FieldName() == "userInfo"
}

// closed reports whether a constant ends in a separator where the function is open.
func (c constant) closed() bool {
	last, first := strings.ContainsAny(c.text[len(c.text)-1:], separators), strings.ContainsAny(c.text[:1], separators)
	return c.open == "startsWith" && last || c.open == "endsWith" && first || c.open == "contains" && (first || last)
}

// operands returns the strings that a policy can read of its params and of given namespaces, with the parts of those that are lists.
func (s Subject) operands(p Policy) []string {
	var found []string
	for _, m := range slices.Concat(s.Given, s.Policies) {
		kind := (&unstructured.Unstructured{Object: m.Object}).GroupVersionKind()
		if kind.Kind != "Namespace" && !slices.Contains(p.paramKinds(), kind) {
			continue
		}
		for _, path := range vary.Paths(m.Object, nil) {
			if text, _ := valueAt[string](m.Object, path); text != "" {
				found = append(append(found, text), strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \n", r) })...)
			}
		}
	}
	return found
}

// openConstants returns the open constants of all policies that refuse requests.
func (s Subject) openConstants() []constant {
	var all []constant
	for _, p := range slices.DeleteFunc(s.List(), Policy.Mutating) {
		all = append(all, p.openConstants(s.operands(p))...)
	}
	return all
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

// aKey matches the keys of labels, and their values.
var aKey = regexp.MustCompile(`^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// keys returns the labels and annotations of objects that objectSelectors and matchConditions name. Of an expression that
// reads labels with other keys than constants, each string may be a key.
func (s Subject) keys() []keyed {
	var found []keyed
	add := func(k keyed) {
		k.values = append([]string{"true", "contract-other"}, k.values...)
		if aKey.MatchString(k.key) && !slices.ContainsFunc(found, func(known keyed) bool { return known.in == k.in && known.key == k.key }) {
			found = append(found, k)
		}
	}
	for _, selector := range s.objectSelectors() {
		for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
			add(keyed{"labels", key, []string{selector.MatchLabels[key]}})
		}
		for _, each := range selector.MatchExpressions {
			add(keyed{"labels", each.Key, each.Values})
		}
	}
	for _, p := range s.List() {
		conditions := p.Expressions("matchConditions")
		for _, text := range conditions {
			texts := cel.Texts(text)
			for _, each := range p.reads([]string{text}, "object").Reads {
				for _, path := range each.Paths {
					for _, key := range keysIn(path, each.Whole, texts) {
						add(keyed{fmt.Sprint(path[1]), key, cel.Texts(conditions...)})
					}
				}
			}
		}
	}
	return found
}

// objectSelectors returns the objectSelectors of policies, bindings and webhooks.
func (s Subject) objectSelectors() []metav1.LabelSelector {
	var found []metav1.LabelSelector
	add := func(match *admissionregistrationv1.MatchResources) {
		if match != nil && match.ObjectSelector != nil {
			found = append(found, *match.ObjectSelector)
		}
	}
	for _, p := range s.List() {
		add(p.spec.MatchConstraints)
	}
	for _, b := range s.Bindings() {
		add(b.spec.MatchResources)
	}
	for _, each := range s.webhooks() {
		add(&admissionregistrationv1.MatchResources{ObjectSelector: webhookOf(each).ObjectSelector})
	}
	return found
}

// keysIn returns the keys of labels or annotations that are read at a path. If any of them may be, each of the texts can be a key.
func keysIn(path cel.Path, whole bool, texts []string) []string {
	if len(path) < 2 || path[0] != any("metadata") || path[1] != any("labels") && path[1] != any("annotations") {
		return nil
	}
	if len(path) == 2 && !whole {
		return nil // the map itself is read on the way to an entry
	}
	if len(path) == 3 {
		if key, ok := path[2].(string); ok {
			return []string{key}
		}
	}
	return texts
}
