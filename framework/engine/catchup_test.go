package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// versioningTarget gives each answer a resource version, and notes what it was asked.
type versioningTarget struct {
	quietTarget
	asked []string
}

func (*versioningTarget) Namespaced(schema.GroupVersionKind) (bool, error) { return true, nil }

func (*versioningTarget) Claim(_ string, r framework.Request) framework.Request { return r }

func (*versioningTarget) HookError(string) error { return nil }

func (*versioningTarget) Info() framework.TargetInfo { return framework.TargetInfo{} }

func (t *versioningTarget) Do(_ context.Context, r framework.Request) (framework.Result, error) {
	t.asked = append(t.asked, fmt.Sprintf("%s %s %s", r.Verb, r.Name, r.Options.Get("resourceVersion")))
	var result framework.Result
	result.Status.Code = 200
	result.Object = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": r.Name, "resourceVersion": fmt.Sprint(100 + len(t.asked))}}}
	return result, nil
}

// Before an update or a deletion the cache is waited for, if anything of the kind
// was written before, and not otherwise.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	reference := scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	patch := scenario.Step{Patch: &scenario.Patch{ObjectReference: reference, Merge: map[string]any{}}}
	dry := patch
	dry.DryRun = true
	for name, test := range map[string]struct {
		steps []scenario.Step
		asked []string
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
			target := &versioningTarget{}
			c := &scenarioCase{target: target, mu: &sync.Mutex{}}
			for _, step := range test.steps {
				if failure := c.step(t.Context(), step); failure != nil {
					t.Fatal(failure)
				}
			}
			if diff := cmp.Diff(test.asked, target.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
