package policycoverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/report"
)

// values says which values a part had in some case.
type values struct{ yes, no bool }

// met is what the cases have met of one policy.
type met struct {
	parts     []values
	variables map[string]bool
	bindings  map[int]bool
	// requests are "CREATE apps/deployments", and params "namespace/name".
	requests, params map[string]bool
	// matched and evaluated are true if the rules and selectors of the policy match a request, and if the matchConditions are
	// true for one.
	matched, evaluated bool
	cut                bool
}

// met collects what all cases have met of the policy with a number.
func (t *test) met(number int) met {
	p := t.policies[number]
	all := met{parts: make([]values, len(p.parts)), variables: map[string]bool{}, bindings: map[int]bool{}, requests: map[string]bool{}, params: map[string]bool{}}
	for _, seen := range t.seen {
		all.cut = all.cut || seen.cut[number]
		for at, messages := range seen.evaluations {
			if at.policy == number {
				all.bindings[at.binding] = true
				all.add(p, messages)
			}
		}
	}
	return all
}

// add adds one evaluation.
func (m *met) add(p *policy, messages map[string]bool) {
	evaluation := false
	for message := range messages {
		word, rest, _ := strings.Cut(message, " ")
		switch word {
		case evaluated:
			evaluation = true
		case matched:
			m.matched = true
			operation, rest, _ := strings.Cut(rest, " ")
			resource, param, _ := strings.Cut(rest, " ")
			m.requests[operation+" "+resource] = true
			m.params[param] = true
		}
	}
	m.evaluated = m.evaluated || evaluation
	reached := p.reached(messages, evaluation)
	for i, each := range p.parts {
		if each.owner == "" || reached[each.owner] {
			m.parts[i].yes = m.parts[i].yes || messages[fmt.Sprintf("%dt", i)]
			m.parts[i].no = m.parts[i].no || messages[fmt.Sprintf("%df", i)]
		}
	}
	maps.Copy(m.variables, reached)
}

// reached returns the variables that were evaluated: something that was evaluated reads them.
func (p *policy) reached(messages map[string]bool, evaluation bool) map[string]bool {
	found := map[string]bool{}
	for before := -1; before < len(found); {
		before = len(found)
		for i, each := range p.references {
			here := messages[fmt.Sprintf("%dr", i)] || len(each.context) == 0 && evaluation
			if here && (each.owner == "" || found[each.owner]) {
				found[each.variable] = true
			}
		}
	}
	return found
}

// coverage returns what the cases of the test never decide.
func (t *test) coverage() report.Coverage {
	first := t.scenarios[0]
	c := report.Coverage{Name: first.Metadata.Name, Cases: len(t.seen)}
	for number, p := range t.policies {
		one := finder{test: t, policy: p, number: number, met: t.met(number), coverage: &c}
		one.find()
	}
	slices.SortStableFunc(c.Undecided, func(a, b report.Undecided) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return c
}

// finder finds what the cases never decide of one policy.
type finder struct {
	met
	test     *test
	policy   *policy
	number   int
	coverage *report.Coverage
}

// never adds something that no case has met, at a field and a position in its text.
func (f *finder) never(field string, at [2]int, what, hint string) {
	f.undecided(f.policy.index, field, at, report.Undecided{Never: what, Hint: hint})
}

func (f *finder) undecided(given int, field string, at [2]int, u report.Undecided) {
	problem := f.test.scenarios[0].ErrorIn(fmt.Sprintf("given[%d]", given), field, at, "")
	u.File, u.Line, u.Column = problem.File, problem.Line, problem.Column
	u.Policy, u.Field = f.policy.GetKind()+" "+f.policy.GetName(), field
	f.coverage.Undecided = append(f.coverage.Undecided, u)
}

// count counts something that can be met or not, and reports whether it was. What was not observed is unknown.
func (f *finder) count(field string, at [2]int, ok bool, unknown string) bool {
	f.coverage.Parts++
	switch {
	case ok:
		f.coverage.Decided++
	case unknown != "":
		f.coverage.Unknown++
		f.undecided(f.policy.index, field, at, report.Undecided{Unknown: unknown})
		return true
	}
	return ok
}

func (f *finder) find() {
	start := [2]int{1, 1}
	missing := f.test.missed[missed{f.number, -1}]
	if !f.count("metadata.name", start, f.matched, missing) {
		f.never("metadata.name", start, "is never evaluated", "the rules and selectors of the policy and of its bindings match no request of a case: `admissiontest why` says which")
		return
	}
	if !f.matched {
		return
	}
	f.rules()
	f.bound()
	f.findParts(missing)
	for _, field := range f.policy.unread {
		f.count(field, start, false, "the expression has identifiers in backquotes, or cannot be parsed")
	}
}

// rules finds the operations and resources in the rules that no request has.
func (f *finder) rules() {
	for i, rule := range f.policy.list("matchConstraints", "resourceRules") {
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		operations, _, _ := unstructured.NestedStringSlice(rule, "operations")
		is := func(operations, resources []string) bool {
			for request := range f.requests {
				operation, rest, _ := strings.Cut(request, " ")
				group, resource, _ := strings.Cut(rest, "/")
				if hasOne(operations, operation) && hasOne(groups, group) && slices.ContainsFunc(resources, func(each string) bool { return matches(each, resource) }) {
					return true
				}
			}
			return false
		}
		at := fmt.Sprintf("spec.matchConstraints.resourceRules[%d]", i)
		if !is(operations, resources) {
			f.count(at, [2]int{1, 1}, false, "")
			f.never(at, [2]int{1, 1}, "no case matches this rule", hintOf(operations[0])+" for "+strings.Join(resources, " or "))
			continue
		}
		for j, operation := range operations {
			at := fmt.Sprintf("%s.operations[%d]", at, j)
			if !f.count(at, [2]int{1, 1}, is([]string{operation}, resources), "") {
				f.never(at, [2]int{1, 1}, "no case has the operation "+operation, hintOf(operation))
			}
		}
		for j, resource := range resources {
			at := fmt.Sprintf("%s.resources[%d]", at, j)
			if !f.count(at, [2]int{1, 1}, is(operations, []string{resource}), "") {
				f.never(at, [2]int{1, 1}, "no case is for "+resource, "add a case with such an object")
			}
		}
	}
}

func hintOf(operation string) string {
	switch operation {
	case "CREATE", "*":
		return "add a case"
	case "CONNECT":
		return "write a Scenario"
	case "UPDATE":
		return "add a case with old"
	}
	return "add a case with operation: " + operation
}

func hasOne(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// matches reports whether a resource of a rule matches that of a request: deployments, deployments/scale, deployments/*, */scale.
func matches(rule, resource string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	ruleName, ruleSub, divided := strings.Cut(rule, "/")
	if rule == "*" {
		return sub == ""
	}
	return (ruleName == "*" || ruleName == name) && (!divided && sub == "" || divided && (ruleSub == "*" || ruleSub == sub))
}

// bound finds the bindings and params that no request meets.
func (f *finder) bound() {
	given := f.test.scenarios[0].Spec.Given
	for _, at := range f.policy.bindings {
		name, _, _ := unstructured.NestedString(given[at], "metadata", "name")
		f.coverage.Parts++
		if f.bindings[at] {
			f.coverage.Decided++
			continue
		}
		f.undecided(at, "metadata.name", [2]int{1, 1}, report.Undecided{
			Never: "the binding " + name + " never decides",
			Hint:  "its matchResources and paramRef select nothing in a case",
		})
	}
	kind, _, _ := unstructured.NestedString(f.policy.Object, "spec", "paramKind", "kind")
	apiVersion, _, _ := unstructured.NestedString(f.policy.Object, "spec", "paramKind", "apiVersion")
	for i, manifest := range given {
		u := unstructured.Unstructured{Object: manifest}
		if kind == "" || u.GetKind() != kind || u.GetAPIVersion() != apiVersion {
			continue
		}
		f.coverage.Parts++
		if f.meets(u) {
			f.coverage.Decided++
			continue
		}
		f.undecided(i, "metadata.name", [2]int{1, 1}, report.Undecided{
			Never: "no case meets the param " + u.GetName(), Hint: "no binding selects it for a request of a case",
		})
	}
}

// meets reports whether a param was met. On an API server, the name of a namespace of the test is longer.
func (f *finder) meets(param unstructured.Unstructured) bool {
	want := strings.TrimSuffix(strings.TrimPrefix(param.GetNamespace(), "$(namespace."), ")")
	for each := range f.params {
		namespace, name, _ := strings.Cut(each, "/")
		if name == param.GetName() && (want == "" || namespace == want || strings.HasSuffix(namespace, "-"+want)) {
			return true
		}
	}
	return false
}
