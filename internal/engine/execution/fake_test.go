package execution

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// fakeSandbox answers each request with a new resource version and notes the requests
// and the installed objects.
type fakeSandbox struct {
	targettest.Sandbox
	requests  []string
	installed []string
}

func (s *fakeSandbox) Do(_ context.Context, r framework.Request) (framework.Result, error) {
	s.requests = append(s.requests, fmt.Sprintf("%s %s %s", r.Verb, r.Name, r.HTTP.Query.Get("resourceVersion")))
	var result framework.Result
	result.Status.Code = 200
	result.Object = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": r.Name, "resourceVersion": fmt.Sprint(100 + len(s.requests))}}}
	return result, nil
}

func (s *fakeSandbox) Send(ctx context.Context, r framework.Request) (framework.Result, error) {
	return s.Do(ctx, r)
}

func (s *fakeSandbox) Install(_ context.Context, manifest map[string]any, _ map[string]hook.Script) error {
	s.installed = append(s.installed, kindOf(manifest).Kind)
	return nil
}

// caseOn returns a case without a scenario on a sandbox.
func caseOn(sandbox target.Sandbox) *Case {
	return &Case{target: targettest.Target{Sandbox: sandbox}, sandbox: sandbox, shared: newShared()}
}

// response returns a Result with a status.
func response(code int32, message string) framework.Result {
	var result framework.Result
	result.Status.Code, result.Status.Message = code, message
	return result
}
