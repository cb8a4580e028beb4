package policymutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

// TestCases: for survivors that a request notices, a case is found. With it among the cases, all of them pass, and the mutant is noticed.
func TestCases(t *testing.T) {
	options := load(t, "cases.yaml")
	all := mutate(t, options.Scenarios)
	file, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	documents := strings.Split(string(file), "\n---\n")
	found := map[string]bool{}
	for i, document := range documents {
		for _, m := range all {
			if !strings.Contains(document, "metadata: {name: "+m.Name+"}") {
				continue
			}
			fmt.Fprintf(&text, "%s: %d possible, %d noticed, %d refused, %d not judged %s\n", m.Name, m.Possible, m.Noticed, m.Refused, m.Unjudged, m.Reason)
			added := map[string]bool{}
			for _, s := range m.Survivors {
				fmt.Fprintf(&text, "  %d:%d %s: %s -> %s\n%s", s.Line, s.Column, s.Field, s.Old, s.New, caseText(t, s))
				found[changeOf(m, s)] = s.Case != nil
				if one := caseText(t, s); one != "" && !added[one] {
					added[one] = true
					documents[i] += "\n  " + strings.TrimSpace(strings.ReplaceAll(one, "\n", "\n  "))
				}
			}
		}
	}
	golden.Compare(t, "testdata/cases.txt", text.String())
	name := filepath.Join(t.TempDir(), "more.yaml")
	if err := os.WriteFile(name, []byte(strings.Join(documents, "\n---\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	scenarios, err := scenario.Load(scenario.LoadOptions{}, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutate(t, scenarios) {
		if m.Reason != "" {
			t.Errorf("%s: with the cases that were found: %s", m.Name, m.Reason)
		}
		for _, s := range m.Survivors {
			if found[changeOf(m, s)] {
				t.Errorf("%s: %s survives with its case", m.Name, changeOf(m, s))
			}
		}
	}
}

// caseText returns the case of a survivor as YAML for the list cases, or "".
func caseText(t *testing.T, s report.Survivor) string {
	t.Helper()
	if s.Case == nil {
		return ""
	}
	text, err := yaml.Marshal([]map[string]any{s.Case})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func changeOf(m report.Mutants, s report.Survivor) string {
	return fmt.Sprintf("%s: %s at %d:%d: %s -> %s", m.Name, s.Field, s.Line, s.Column, s.Old, s.New)
}

// mutate runs the mutants of PolicyTests all of whose cases pass.
func mutate(t *testing.T, scenarios []scenario.Scenario) []report.Mutants {
	t.Helper()
	options := load(t)
	options.Scenarios = scenarios
	var before report.Report
	for _, c := range scenario.Cases(scenarios) {
		before.Outcomes = append(before.Outcomes, report.Outcome{Name: c.Metadata.Name, Verdict: framework.Pass})
	}
	all, err := Mutate(t.Context(), options, MutateOptions{Most: 100, Before: before})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
