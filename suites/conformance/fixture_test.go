package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// fixtureVariable, when set, makes this test binary run the fixture: a suite on
// an API server that is not one. Its value is a list of words that change it.
const fixtureVariable = "CONFORMANCE_FIXTURE"

// reportVariable is the folder that the fixture writes its report to.
const reportVariable = "CONFORMANCE_FIXTURE_REPORT"

// TestFixture is the suite that the other tests run in a process of its own,
// since Ginkgo runs one suite in each.
func TestFixture(t *testing.T) {
	words := os.Getenv(fixtureVariable)
	if words == "" {
		t.Skip("only run by other tests")
	}
	fake := &fixture{broken: strings.Contains(words, "broken"), dies: strings.Contains(words, "dies")}
	conformance.Run(t, conformance.Options{
		Provider: fake, FS: fixtureScenarios(), Strict: strings.Contains(words, "strict"),
		Skip:      map[string]string{"two.skipped": "ticket 12"},
		ReportDir: os.Getenv(reportVariable),
	})
}

// fixtureScenarios are one scenario for each way to end. The fake server does what
// the name of the object created says.
func fixtureScenarios() fstest.MapFS {
	const form = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: %[1]s}
spec:
  level: %[2]s
  requirement: The law of %[1]s.
  source: ["https://example.com/law"]
  behaviours: [%[3]s]
  %[4]s
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[5]s}}
      then: {code: 201}
`
	out := fstest.MapFS{}
	for _, one := range []struct{ name, level, behaviour, more, object string }{
		{"one.pass", "MUST", "ORDER-001", "", "fine"},
		{"one.must-fails", "MUST", "ORDER-001", "", "refused"},
		{"one.should-fails", "SHOULD", "ORDER-014", "", "refused"},
		{"one.may-fails", "MAY", "ORDER-002", "", "refused"},
		{"two.pass", "SHOULD", "ORDER-003", "", "fine"},
		{"two.unsupported", "MUST", "ORDER-004", `since: "1.99"`, "refused"},
		{"two.skipped", "MUST", "ORDER-004", "", "refused"},
		{"two.error", "MUST", "ORDER-004", "", "broken"},
		{"two.inconclusive", "MUST", "ORDER-004", "", "open"},
	} {
		area, slug, _ := strings.Cut(one.name, ".")
		text := fmt.Sprintf(form, one.name, one.level, one.behaviour, one.more, one.object)
		out[path.Join(area, slug+".yaml")] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// fixture gives the fake server.
type fixture struct{ broken, dies bool }

func (p *fixture) Start(context.Context, *scenario.Server) (engine.Target, error) {
	if p.broken {
		return nil, errors.New("start fixture: it is broken")
	}
	return target{dies: p.dies}, nil
}

// target is a server that answers as the name of the object demands.
type target struct{ dies bool }

func (t target) Do(_ context.Context, request framework.Request) (framework.Result, error) {
	if t.dies {
		return framework.Result{}, fmt.Errorf("fixture: %w", framework.ErrLost)
	}
	status := func(code int32) framework.Result {
		return framework.Result{Status: metav1.Status{Code: code, Message: "by the fixture"}}
	}
	switch request.Name {
	case "refused":
		return status(http.StatusForbidden), nil
	case "broken":
		return framework.Result{}, errors.New("fixture: nobody knows why")
	case "open":
		return framework.Result{}, fmt.Errorf("fixture: %w", framework.ErrNotSettled)
	default:
		return status(http.StatusCreated), nil
	}
}

func (t target) Alive(context.Context) error {
	if t.dies {
		return fmt.Errorf("fixture: %w", framework.ErrLost)
	}
	return nil
}

func (target) Info() framework.TargetInfo {
	return framework.TargetInfo{Kind: framework.TargetKubeconfig, ServerVersion: "v1.36.3"}
}
func (target) Run() string                        { return "fixture" }
func (target) Open(context.Context, string) error { return nil }
func (target) Put(context.Context, string, map[string]any, map[string]hook.Script) error {
	return nil
}

func (target) Remove(context.Context, string, schema.GroupVersionKind, string) error {
	return nil
}
func (target) Settle(context.Context, []map[string]any) error              { return nil }
func (target) Claim(_ string, request framework.Request) framework.Request { return request }
func (target) Namespaced(schema.GroupVersionKind) (bool, error)            { return true, nil }
func (target) SetScript(string, string, hook.Script) error                 { return nil }
func (target) SetConversion(string, hook.Conversion) error                 { return nil }
func (target) Calls(string) []framework.Call                               { return nil }
func (target) Mark(string)                                                 {}
func (target) HookError(string) error                                      { return nil }
func (target) Disarm(context.Context, string) error                        { return nil }
func (target) Close(context.Context) error                                 { return nil }
func (target) Audit(context.Context, string) (*framework.Audit, error) {
	return nil, errors.New("fixture: no audit log")
}
