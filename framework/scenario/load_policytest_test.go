package scenario

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/internal/golden"
)

// TestPolicyTests compares the scenarios of the cases with golden files.
func TestPolicyTests(t *testing.T) {
	for _, name := range []string{"bound", "unbound"} {
		t.Run(name, func(t *testing.T) {
			scenarios, err := Load(LoadOptions{}, filepath.Join("testdata", "policytest", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			installation := map[string]int{}
			for i, one := range scenarios {
				for _, c := range one.Cases {
					installation[c.Name] = i
				}
			}
			given := map[int]bool{}
			for _, one := range Cases(scenarios) {
				number := installation[one.Metadata.Name]
				if given[number] {
					one.Spec.Given = nil // shown once
				}
				given[number] = true
				shown, err := yaml.Marshal(one.Spec)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&text, "--- %s, line %d, installation %d\n%s", one.Metadata.Name, one.Line, number, shown)
			}
			golden.Compare(t, filepath.Join("testdata", "policytest", name+".golden"), text.String())
		})
	}
	golden.Whole(t, filepath.Join("testdata", "policytest", "*.golden"))
}

// What an API server finds wrong has its position in the file that the manifest is from.
func TestPolicyTestPositions(t *testing.T) {
	scenarios, err := Load(LoadOptions{}, filepath.Join("testdata", "policytest", "bound.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Scenario{}
	for _, one := range Cases(scenarios) {
		byName[strings.TrimPrefix(one.Metadata.Name, "policytest.bound.")] = one
	}
	for _, c := range []struct{ name, manifest, field, want string }{
		{"create-configmap-orphan", "when[0].create", "metadata.name", "objects.yaml:7:12"},
		{"create-configmap-new", "when[0].create", "metadata.generateName", "bound.yaml:7:81"},
		{"update-configmap-owned", "when[0].patch.merge", "metadata.labels", "objects.yaml:3:25"},
		{"in-a-namespace", "given[0]", "spec.validations[0].expression", "policy.yaml:8:18"},
		{"in-a-namespace", "given[1]", "spec.paramRef", "binding.yaml:4:54"},
		{"in-a-namespace", "given[2]", "metadata.namespace", "params.yaml:3:25"},
	} {
		t.Run(c.name+" "+c.manifest+" "+c.field, func(t *testing.T) {
			one, ok := byName[c.name]
			if !ok {
				t.Errorf("no case %s in %v", c.name, reflect.ValueOf(byName).MapKeys())
				return
			}
			problem := one.ErrorAt(c.manifest, c.field, "m", "")
			if got := fmt.Sprintf("%s:%d:%d", filepath.Base(problem.File), problem.Line, problem.Column); got != c.want {
				t.Errorf("%s %s of %s: got %s, want %s", c.manifest, c.field, c.name, got, c.want)
			}
		})
	}
}
