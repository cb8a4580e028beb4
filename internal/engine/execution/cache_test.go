package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Before an update or delete, the engine waits for the cache if something of the kind was
// written before.
func TestWaitForCache(t *testing.T) {
	t.Parallel()
	reference := scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	patch := scenario.Step{Patch: &scenario.Patch{ObjectReference: reference, Merge: map[string]any{}}}
	dry := patch
	dry.DryRun = true
	for name, test := range map[string]struct {
		steps    []scenario.Step
		requests []string
	}{
		"nothing was written": {[]scenario.Step{patch}, []string{"patch a "}},
		"after a write":       {[]scenario.Step{patch, patch}, []string{"patch a ", "get a 101", "patch a "}},
		"after a dry run":     {[]scenario.Step{dry, patch}, []string{"patch a ", "patch a "}},
		"before a deletion": {
			[]scenario.Step{{Create: manifest}, {Delete: &scenario.Delete{ObjectReference: reference}}},
			[]string{"create a ", "get a 101", "delete a "},
		},
		"before a read or a create": {
			[]scenario.Step{patch, {Get: &reference}, {Create: manifest}},
			[]string{"patch a ", "get a ", "create a "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandbox := &fakeSandbox{}
			c := caseOn(sandbox)
			for _, step := range test.steps {
				if failure := c.step(t.Context(), step); failure != nil {
					t.Fatal(failure)
				}
			}
			if diff := cmp.Diff(test.requests, sandbox.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
