package check

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// suite is the name of the public package.
const suite = "contract"

// Plan is a Subject with the selected rules. It is for adapters of other test frameworks, which
// check and report each rule themselves; package specs is such an adapter. Make a Plan with
// NewPlan. Its methods are safe for concurrent use.
type Plan struct {
	subject Subject
	rules   []Rule
	options rule.Options
	misuse  []string
	examine func() error
}

// NewPlan selects rules from all. It does not build the plugin.
func NewPlan(subject Subject, all []Rule, options rule.Options) *Plan {
	p := &Plan{subject: subject, options: options, misuse: options.Misuse(suite, rule.Rules(all)), rules: rule.Select(all, options)}
	if p.options.Budget == 0 {
		p.options.Budget = rule.DefaultBudget
	}
	p.examine = sync.OnceValue(func() error {
		misuse, broken := examine(p.subject)
		p.misuse = append(p.misuse, misuse...)
		return broken
	})
	return p
}

// Rules returns the selected rules in the order of their checks.
func (p *Plan) Rules() []rule.Rule { return rule.Rules(p.rules) }

// Misuse returns what is wrong with the Subject or the options; empty means nothing. The
// first call builds a plugin.
func (p *Plan) Misuse() []string {
	_ = p.examine()
	return slices.Clone(p.misuse)
}

// Check checks one of the selected rules and applies its waiver. If the rule is not selected, the
// verdict is Errored.
func (p *Plan) Check(wanted rule.Rule) rule.Outcome {
	for _, each := range p.rules {
		if each.ID == wanted.ID {
			if p.examine() != nil {
				return unchecked(wanted)
			}
			return p.options.Apply(suite, NewT(p.subject).Run(each, p.options.Budget))
		}
	}
	return rule.Outcome{Rule: wanted, Verdict: framework.Errored, Reason: fmt.Sprintf("find rule %q: it is not among the selected rules, which Plan.Rules returns", wanted.ID)}
}

// Broken reports whether no plugin of the Subject can be built. Then no rule is checked, and Plan.Misuse says why.
func Broken(p *Plan) bool { return p.examine() != nil }

// unchecked is the outcome of each rule if no plugin can be built.
func unchecked(one rule.Rule) rule.Outcome {
	return rule.Outcome{Rule: one, Verdict: framework.Inconclusive, Reason: "no plugin could be built"}
}

// examine checks a Subject before any rule is checked: the Subject must have requests that an API
// server can send, and it must be possible to build the plugin. The error says why no plugin can be
// built.
func examine(subject Subject) (misuse []string, broken error) {
	if len(subject.Requests()) == 0 {
		misuse = append(misuse, fmt.Sprintf("contract: Subject %s has no requests: most rules need them, so fill Allow and Reject", subject.Name))
	}
	built := false
	outcome := NewT(subject).Run(Rule{Check: func(t *T) {
		h, err := t.Build(t.World())
		if err != nil {
			t.Fatalf("%v", err)
		}
		if waiter, ok := h.Plugin().(interface{ WaitForReady() bool }); ok && !waiter.WaitForReady() {
			t.Fatalf("the plugin is not ready 10 s after its initialization: its WaitForReady returns false, and an API server would refuse each request: look at what it gives to SetReadyFunc, and whether something starts the informers")
		}
		built = true
		var objects []runtime.Object
		for _, request := range t.Requests() {
			attributes, err := h.Attributes(request, framework.Mutating)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			if object := attributes.GetObject(); object != nil {
				objects = append(objects, object)
			}
		}
		misuse = append(misuse, enforcedProblems(subject, objects)...)
		t.Reached()
	}}, 2*rule.DefaultBudget) // a plugin may wait for 10 s until it is ready
	switch {
	case outcome.Verdict == framework.Pass:
	case built:
		misuse = append(misuse, fmt.Sprintf("contract: Subject %s: %s", subject.Name, outcome.Reason))
	default:
		broken = errors.New(outcome.Reason)
		misuse = append(misuse, fmt.Sprintf("contract: build the plugin of Subject %s: %s\nno rule was checked", subject.Name, outcome.Reason))
	}
	return misuse, broken
}

// enforcedProblems returns the paths of Enforced that no object has.
func enforcedProblems(subject Subject, objects []runtime.Object) (misuse []string) {
	for _, path := range subject.Enforced {
		has := func(object runtime.Object) bool { return HasField(object, path) }
		if len(objects) > 0 && !slices.ContainsFunc(objects, has) {
			misuse = append(misuse, fmt.Sprintf(`contract: Subject %s: Enforced: no object of its requests can have a field %q; want JSON paths such as "metadata.labels[team]" and "spec.containers[].image"`, subject.Name, path))
		}
	}
	return misuse
}
