package execution

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
)

// lateSandbox has the object from the second request on.
type lateSandbox struct {
	target.Sandbox
	requests int
}

func (s *lateSandbox) Send(context.Context, framework.Request) (framework.Result, error) {
	s.requests++
	var result framework.Result
	result.Status.Code = 404
	if s.requests > 1 {
		result.Status.Code = 200
	}
	return result, nil
}

// An inner step has the patience of the scenario.
func TestInnerStepIsPatient(t *testing.T) {
	t.Parallel()
	step := scenario.Step{Wait: &scenario.Wait{ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "late"}}}
	c := caseOn(&lateSandbox{})
	c.patience = time.Minute
	if failure := c.innerStep(t.Context(), step, ""); failure != nil {
		t.Errorf("wait for an object that comes late: %s", failure)
	}
	c = caseOn(&lateSandbox{})
	if failure := c.innerStep(t.Context(), step, ""); failure == nil {
		t.Error("the wait held without patience")
	}
}

// Steps of every action in parallel share scripts and results without a data race.
func TestParallelActions(t *testing.T) {
	t.Parallel()
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := server.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating}); err != nil {
		t.Fatal(err)
	}
	const each = 8
	sandbox := &hookSandbox{server: server}
	sandbox.scripted.Add(each)
	c := caseOn(sandbox)
	c.scripts, c.patience = map[string]hook.Script{}, time.Minute
	manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	reference := scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	var steps []scenario.Step
	for range each {
		steps = append(steps,
			scenario.Step{Script: map[string]scenario.Hook{"w": {}}},
			scenario.Step{Install: []map[string]any{manifest}},
			scenario.Step{Create: manifest, ID: "a"}, scenario.Step{Update: manifest, ID: "a"}, scenario.Step{Apply: manifest, ID: "a"},
			scenario.Step{Patch: &scenario.Patch{ObjectReference: reference, Merge: map[string]any{}}},
			scenario.Step{Get: &reference, ID: "b"}, scenario.Step{List: &reference},
			scenario.Step{Delete: &scenario.Delete{ObjectReference: reference}},
			scenario.Step{DeleteCollection: &scenario.Delete{ObjectReference: reference}},
			scenario.Step{Remove: []scenario.ObjectReference{reference}},
			scenario.Step{Wait: &scenario.Wait{ObjectReference: reference, Object: map[string]any{}}},
		)
	}
	if failure := c.step(t.Context(), scenario.Step{Parallel: steps}); failure != nil {
		t.Error(failure)
	}
}

// hookSandbox is a Sandbox with a Hook server and no API server. It has no Do: if each of many requests at
// the same time recorded the calls of all, the memory would grow with the square of their number.
type hookSandbox struct {
	target.Sandbox
	server *hook.Server
	// scripted makes calls of SetScript return together, so that what follows overlaps.
	scripted sync.WaitGroup
}

func (s *hookSandbox) Send(_ context.Context, r framework.Request) (framework.Result, error) {
	var result framework.Result
	result.Status.Code = 200
	result.Object = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": r.Name}}}
	return result, nil
}

func (*hookSandbox) Install(context.Context, map[string]any, map[string]hook.Script) error {
	return nil
}

func (*hookSandbox) Delete(context.Context, schema.GroupVersionKind, string) error { return nil }

func (s *hookSandbox) SetScript(webhook string, script hook.Script) error {
	err := s.server.SetScript("o", webhook, script)
	s.scripted.Done()
	s.scripted.Wait()
	return err
}

func (s *hookSandbox) Record() *hook.Recording { return s.server.Record("o") }
