package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// lateTarget has the object asked for from the second time on.
type lateTarget struct {
	Target
	asked int
}

func (*lateTarget) Namespaced(schema.GroupVersionKind) (bool, error) { return true, nil }

func (t *lateTarget) Do(context.Context, framework.Request) (framework.Result, error) {
	t.asked++
	var result framework.Result
	result.Status.Code = 404
	if t.asked > 1 {
		result.Status.Code = 200
	}
	return result, nil
}

// A step within another has the patience of the scenario.
func TestUnmarkedIsPatient(t *testing.T) {
	t.Parallel()
	step := scenario.Step{Wait: &scenario.Wait{ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "late"}}}
	c := &scenarioCase{target: &lateTarget{}, patience: time.Minute, mu: &sync.Mutex{}}
	if failure := c.unmarked(t.Context(), step); failure != nil {
		t.Errorf("wait for an object that comes late: %s", failure)
	}
	c = &scenarioCase{target: &lateTarget{}, mu: &sync.Mutex{}}
	if failure := c.unmarked(t.Context(), step); failure == nil {
		t.Error("without patience the wait held; want it not to")
	}
}
