package contract_test

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// mutant is a broken plugin: it breaks the one property it is listed for.
type mutant struct {
	// build makes the broken plugin of a sound one.
	build func(*sound) admission.Interface
	// factory, when set, takes the place of the whole factory.
	factory func(io.Reader) (admission.Interface, error)
	// subject changes what the plugin is tested with; nil leaves it.
	subject func(*contract.Subject)
}

// mutants returns the broken plugins, by the property that each breaks.
func mutants() map[contract.ID]mutant {
	all := map[contract.ID]mutant{}
	for _, family := range []map[contract.ID]mutant{
		handlesMutants(), panicMutants(), readyMutants(),
	} {
		maps.Copy(all, family)
	}
	return all
}

func (m mutant) of() contract.Subject {
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

func optional() contract.Option {
	var ids []contract.ID
	for _, property := range contract.Properties() {
		ids = append(ids, property.ID)
	}
	return contract.With(ids...)
}

// TestSound: the correct plugin passes all, none of it for want of something to see.
func TestSound(t *testing.T) {
	report := contract.Check(mutant{build: func(p *sound) admission.Interface { return p }}.of(), optional())
	for _, misuse := range report.Misuse {
		t.Error(misuse)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Verdict != framework.Pass {
			t.Errorf("%s", outcome.Text("sound"))
		}
	}
}

// TestKillMatrix: each broken plugin fails its own property and no other.
func TestKillMatrix(t *testing.T) {
	all := mutants()
	ids := slices.Sorted(maps.Keys(all))
	var matrix strings.Builder
	for _, property := range contract.Properties() {
		if _, ok := all[property.ID]; !ok {
			t.Errorf("%s: no broken plugin fails it", property.ID)
		}
	}
	for _, id := range ids {
		var failed []string
		report := contract.Check(all[id].of(), optional())
		for _, misuse := range report.Misuse {
			t.Errorf("broken %s: %s", id, misuse)
		}
		row := fmt.Sprintf("%-4s", id)
		for _, outcome := range report.Outcomes {
			mark := map[framework.Verdict]string{framework.Pass: "·", framework.Fail: "X", framework.Unsupported: "u", framework.Inconclusive: "?"}[outcome.Verdict]
			row += mark
			if outcome.Verdict == framework.Fail {
				failed = append(failed, string(outcome.Property.ID))
				if outcome.Property.ID != id {
					t.Logf("broken %s: %s", id, outcome.Text("broken "+string(id)))
				}
			}
		}
		matrix.WriteString(row + "\n")
		if len(failed) != 1 || failed[0] != string(id) {
			t.Errorf("the plugin broken in %s fails %q, want [%q] alone", id, failed, id)
		}
	}
	t.Logf("broken plugin x property (X fails, · passes, ? inconclusive, u unsupported):\n%s", matrix.String())
}
