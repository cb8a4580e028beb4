package execution

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/target"
)

// A wait step that times out says what the object had last.
func TestWaitTimesOut(t *testing.T) {
	for name, test := range map[string]struct {
		wait scenario.Wait
		says string
	}{
		"other value": {scenario.Wait{Object: map[string]any{"metadata": map[string]any{"name": "other"}}}, `object.metadata.name: expected "other", actual "a"`},
		"still there": {scenario.Wait{Gone: true}, "the last response was 200"},
	} {
		t.Run(name, func(t *testing.T) {
			c := caseOn(&fakeSandbox{})
			c.patience = 20 * time.Millisecond
			test.wait.ObjectReference = scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
			err := c.wait(t.Context(), test.wait)
			if !errors.Is(err, framework.ErrTimeout) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v; want a timeout with %q", err, test.says)
			}
		})
	}
}

// withSecret is a Sandbox with a Secret.
type withSecret struct{ target.Sandbox }

func (withSecret) Send(context.Context, framework.Request) (framework.Result, error) {
	var result framework.Result
	result.Status.Code = 200
	result.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"pin": "77"}}}
	return result, nil
}

// What a Secret had last is not in a report, however short it is.
func TestWaitForASecretTimesOut(t *testing.T) {
	c := caseOn(withSecret{})
	c.patience = 20 * time.Millisecond
	err := c.wait(t.Context(), scenario.Wait{
		ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "a"},
		Object:          map[string]any{"data": map[string]any{"pin": "78"}},
	})
	if err == nil || !strings.Contains(err.Error(), "object.data.pin: expected (redacted), actual (redacted)") {
		t.Errorf("got %v; want a timeout with the field, and no value", err)
	}
}

// gone is a Sandbox in which nothing exists.
type gone struct{ target.Sandbox }

func (gone) Send(context.Context, framework.Request) (framework.Result, error) {
	return response(404, "not found"), nil
}

// What is waited for to be gone must have existed: the scenario was given it, wrote it or read it.
func TestWaitForWhatNeverExisted(t *testing.T) {
	configMap := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
	}
	c := caseOn(gone{})
	c.ID, c.namespaces, c.Given = "id", []scenario.Namespace{{Name: "other"}}, []map[string]any{configMap("given")}
	c.noteInstalled(configMap("installed"))
	kind := kindOf(configMap(""))
	created := response(201, "")
	created.Object = &unstructured.Unstructured{Object: configMap("generated-1")}
	c.noteSeen(framework.Request{Verb: framework.VerbCreate, Kind: kind, Namespace: "id"}, created)
	c.noteSeen(framework.Request{Verb: framework.VerbGet, Kind: kind, Namespace: "id", Name: "read"}, response(200, ""))
	c.noteSeen(framework.Request{Verb: framework.VerbCreate, Kind: kind, Namespace: "id", Name: "denied"}, response(403, ""))
	c.noteSeen(framework.Request{Verb: framework.VerbCreate, Kind: kind, Namespace: "id", Name: "dry", DryRun: true}, response(201, ""))
	for name, says := range map[string]string{
		"ConfigMap given": "", "ConfigMap installed": "", "ConfigMap generated-1": "", "ConfigMap read": "",
		"ConfigMap redd": `did you mean "read"?`, "ConfigMap dry": "has not seen it", "ConfigMap denied": "has not seen it",
		"Secret given": "check its kind, name and namespace",
	} {
		t.Run(name, func(t *testing.T) {
			kind, name, _ := strings.Cut(name, " ")
			err := c.wait(t.Context(), scenario.Wait{ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: kind, Name: name}, Gone: true})
			switch {
			case says == "" && err != nil:
				t.Errorf("%s %s: %v", kind, name, err)
			case says != "" && (!expect.IsMistake(err) || !strings.Contains(err.Error(), says)):
				t.Errorf("%s %s: got %v; want a mistake with %q", kind, name, err, says)
			}
		})
	}
}
