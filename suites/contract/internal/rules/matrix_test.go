package rules_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// mutant is a broken plugin. It breaks exactly one rule.
type mutant struct {
	// build makes the broken plugin from a correct one.
	build func(*sound) admission.Interface
	// factory, if set, replaces the whole factory.
	factory func(io.Reader) (admission.Interface, error)
	// subject changes the Subject. Nil means no change.
	subject func(*check.Subject)
}

// phase is what a plugin does in place of sound, which it gets.
type phase func(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error

// phased is sound with another Admit or Validate; nil means that of sound.
type phased struct {
	*sound
	admit, validate phase
}

func (p phased) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.admit == nil {
		return p.sound.Admit(ctx, a, o)
	}
	return p.admit(ctx, p.sound, a, o)
}

func (p phased) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.validate == nil {
		return p.sound.Validate(ctx, a, o)
	}
	return p.validate(ctx, p.sound, a, o)
}

func inAdmit(admit phase) func(*sound) admission.Interface {
	return func(p *sound) admission.Interface { return phased{p, admit, nil} }
}

func inValidate(validate phase) func(*sound) admission.Interface {
	return func(p *sound) admission.Interface { return phased{p, nil, validate} }
}

// mutants returns the broken plugins by the ID of the rule that each breaks. Behind a space is what tells the plugins of a
// rule apart.
func mutants() map[string]mutant {
	all := map[string]mutant{}
	for _, family := range []map[string]mutant{
		handlesMutants(), admitMutants(), aliasMutants(), fragileMutants(), answerMutants(), unrelatedMutants(),
		cacheMutants(), worldMutants(), failureMutants(), authorizerMutants(), initializationMutants(), factoryMutants(), lifecycleMutants(), objectMutants(),
	} {
		maps.Copy(all, family)
	}
	return all
}

func (m mutant) of() check.Subject {
	factory := m.factory
	if factory == nil {
		factory = func(config io.Reader) (admission.Interface, error) {
			p, err := newSound(config)
			if err != nil {
				return nil, err
			}
			return m.build(p), nil
		}
	}
	subject := soundSubject(factory)
	if m.subject != nil {
		m.subject(&subject)
	}
	return subject
}

// checkRules checks rules against a Subject; without IDs all rules.
func checkRules(subject check.Subject, ids ...string) (outcomes []rule.Outcome, misuse []string) {
	plan := check.NewPlan(subject, rules.All(), rule.Options{Only: ids})
	outcome := check.Ahead(plan)
	for i := range plan.Rules() {
		outcomes = append(outcomes, outcome(i))
	}
	return outcomes, plan.Misuse()
}

// TestSound: the correct plugin passes every rule, and none is inconclusive.
func TestSound(t *testing.T) {
	outcomes, misuse := checkRules(mutant{build: func(p *sound) admission.Interface { return p }}.of())
	for _, each := range misuse {
		t.Error(each)
	}
	for _, outcome := range outcomes {
		if outcome.Verdict != framework.Pass {
			t.Errorf("%s: got %s, want pass: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
}

// TestKillMatrix: each broken plugin fails its own rule and no other.
func TestKillMatrix(t *testing.T) {
	all := mutants()
	ids := slices.Sorted(maps.Keys(all))
	var matrix strings.Builder
	for _, rule := range rules.All() {
		if _, ok := all[rule.ID]; !ok {
			t.Errorf("%s: no broken plugin fails it", rule)
		}
	}
	for _, name := range ids {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(name, " ")
			var failed []string
			outcomes, misuse := checkRules(all[name].of())
			for _, each := range misuse {
				t.Error(each)
			}
			row := fmt.Sprintf("%-4s", id)
			for _, outcome := range outcomes {
				mark := map[framework.Verdict]string{framework.Pass: "·", framework.Fail: "X", framework.Errored: "X", framework.Unsupported: "u", framework.Inconclusive: "?"}[outcome.Verdict]
				row += mark
				if mark == "X" {
					failed = append(failed, outcome.Rule.ID)
					if outcome.Rule.ID != id {
						t.Logf("it also fails %s: %s", outcome.Rule, outcome.Reason)
					}
				}
			}
			matrix.WriteString(row + "\n")
			if len(failed) != 1 || failed[0] != id {
				t.Errorf("it fails %q, want only [%q]", failed, id)
			}
		})
	}
	t.Logf("broken plugin × rule (X fails, · passes, ? inconclusive, u unsupported):\n%s", matrix.String())
}
