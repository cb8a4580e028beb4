package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/suites/contract/internal/reflection"
)

// DefaultBudget is how long the check of one rule may take unless Options say otherwise.
const DefaultBudget = 10 * time.Second

// Options select rules. They name a rule by its ID or by its Name.
type Options struct {
	// Only has the rules to check. Empty means every rule of level Must and Should.
	Only []string
	// With has rules of level May to check in addition.
	With []string
	// Waivers has the rules that the plugin may break.
	Waivers []Waiver
	// Budget is how long the check of one rule may take. 0 means DefaultBudget.
	Budget time.Duration
	// Strict turns the verdict Inconclusive into Fail.
	Strict bool
}

// Waiver allows a plugin to break a rule.
type Waiver struct {
	Rule, Why string
	// Flaky means that it is no failure if the plugin does not break the rule.
	Flaky bool
}

// Plan is a Subject and the rules that are checked against it. NewPlan makes one. Its
// methods are safe for concurrent use.
type Plan struct {
	subject Subject
	rules   []Rule
	waivers []Waiver
	budget  time.Duration
	strict  bool
	misuse  []string
	examine func() error
}

// NewPlan selects rules from all. It does not build the plugin.
func NewPlan(subject Subject, all []Rule, options Options) *Plan {
	p := &Plan{subject: subject, waivers: options.Waivers, budget: options.Budget, strict: options.Strict}
	if p.budget == 0 {
		p.budget = DefaultBudget
	}
	p.misuse = misuseOf(options, all)
	for _, rule := range all {
		selected := rule.Level != framework.May || slices.ContainsFunc(options.With, rule.Is)
		if len(options.Only) > 0 {
			selected = slices.ContainsFunc(options.Only, rule.Is)
		}
		if selected {
			p.rules = append(p.rules, rule)
		}
	}
	p.examine = sync.OnceValue(func() error {
		misuse, broken := examine(p.subject)
		p.misuse = append(p.misuse, misuse...)
		return broken
	})
	return p
}

// Rules returns the selected rules in the order of their checks.
func (p *Plan) Rules() []Rule { return slices.Clone(p.rules) }

// Misuse returns what is wrong with the Subject or the options; empty means nothing. The
// first call builds a plugin.
func (p *Plan) Misuse() []string {
	_ = p.examine()
	return slices.Clone(p.misuse)
}

// Buildable reports whether a plugin of the Subject can be built.
func (p *Plan) Buildable() bool { return p.examine() == nil }

// Check checks one rule and applies its waiver. With a waiver, Fail and Errored become Skipped, and
// Pass becomes Fail unless the waiver is flaky.
func (p *Plan) Check(rule Rule) Outcome {
	t := NewT(p.subject)
	t.broken = p.examine()
	outcome := t.Run(rule, p.budget)
	if p.strict && outcome.Verdict == framework.Inconclusive {
		outcome.Verdict, outcome.Reason = framework.Fail, "inconclusive, which contract.Strict does not accept: "+outcome.Reason
	}
	for _, waiver := range p.waivers {
		if !rule.Is(waiver.Rule) {
			continue
		}
		outcome.Waiver = waiver.Why
		switch {
		case outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored:
			outcome.Verdict = framework.Skipped
		case outcome.Verdict == framework.Pass && !waiver.Flaky:
			outcome.Verdict = framework.Fail
		}
	}
	return outcome
}

// misuseOf returns what is wrong with options, such as unknown rules and waivers without a reason.
func misuseOf(options Options, all []Rule) []string {
	var misuse, names []string
	for _, rule := range all {
		names = append(names, rule.ID, rule.Name)
	}
	verify := func(option, name string) {
		if !slices.Contains(names, name) {
			misuse = append(misuse, fmt.Sprintf("contract.%s: there is no rule %q%s; contract.Rules lists all rules", option, name, suggest.DidYouMean(name, names)))
		}
	}
	for _, name := range options.Only {
		verify("Only", name)
	}
	for _, name := range options.With {
		verify("With", name)
	}
	for _, waiver := range options.Waivers {
		verify("Waive", waiver.Rule)
		if strings.TrimSpace(waiver.Why) == "" {
			misuse = append(misuse, fmt.Sprintf("contract.Waive: the waiver of %s has no reason: say why the plugin breaks the rule", waiver.Rule))
		}
	}
	return misuse
}

// examine checks a Subject before any rule is checked: the Subject must have requests that an API
// server can send, and it must be possible to build the plugin. The error says why no plugin can be
// built.
func examine(subject Subject) (misuse []string, broken error) {
	if len(subject.Requests()) == 0 {
		misuse = append(misuse, fmt.Sprintf("contract: Subject %s has no requests: most rules need them, so fill Allow and Reject", subject.Name))
	}
	outcome := NewT(subject).Run(Rule{Check: func(t *T) {
		var h *harness.Harness
		if h, broken = t.Build(t.World()); broken != nil {
			return
		}
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
	}}, DefaultBudget)
	switch {
	case broken != nil:
		misuse = append(misuse, fmt.Sprintf("contract: build the plugin of Subject %s: %v", subject.Name, broken))
	case outcome.Verdict == framework.Fail:
		misuse = append(misuse, fmt.Sprintf("contract: Subject %s: %s", subject.Name, outcome.Reason))
	}
	return misuse, broken
}

// enforcedProblems returns the paths of Enforced that no object has.
func enforcedProblems(subject Subject, objects []runtime.Object) (misuse []string) {
	for _, path := range subject.Enforced {
		exists, similar := len(objects) == 0, []string(nil)
		for _, object := range objects {
			ok, more := reflection.HasField(object, path)
			exists, similar = exists || ok, append(similar, more...)
		}
		if !exists {
			misuse = append(misuse, fmt.Sprintf(`contract: Subject %s: Enforced: no object of its requests can have a field %q%s; want JSON paths such as "metadata.labels[team]" and "spec.containers[].image"`,
				subject.Name, path, suggest.DidYouMean(path, similar)))
		}
	}
	return misuse
}

// NewT returns a T without a time limit. Run gives it one.
func NewT(subject Subject) *T { return &T{Subject: subject, ctx: context.Background()} }
