package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
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

// withFiles is a Target whose files can be changed, but not the file "locked".
type withFiles struct {
	targettest.Target
	log *[]string
}

func (t withFiles) Optional() target.Optional {
	note := func(path, what string) error {
		if path == "locked" {
			return errors.New("it is locked")
		}
		*t.log = append(*t.log, what)
		return nil
	}
	return target.Optional{
		WriteFile:  func(path, content string) error { return note(path, fmt.Sprintf("write %s: %s", path, content)) },
		RemoveFile: func(path string) error { return note(path, "remove "+path) },
	}
}

func TestChangeFiles(t *testing.T) {
	var log []string
	c := &Case{target: withFiles{log: &log}}
	if err := c.changeFiles(scenario.Files{Write: map[string]string{"b": "2", "a": "1"}, Remove: []string{"c"}}); err != nil {
		t.Error(err)
	}
	if want := []string{"remove c", "write a: 1", "write b: 2"}; !slices.Equal(log, want) {
		t.Errorf("got %q; want %q", log, want)
	}
	for name, files := range map[string]scenario.Files{"write": {Write: map[string]string{"locked": ""}}, "remove": {Remove: []string{"locked"}}} {
		t.Run(name, func(t *testing.T) {
			if c.changeFiles(files) == nil {
				t.Errorf("%v: got no error", files)
			}
		})
	}
	if (&Case{target: targettest.Target{}}).changeFiles(scenario.Files{Remove: []string{"a"}}) == nil {
		t.Error("a target without files: got no error")
	}
}

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

// waitingTarget counts the waits.
type waitingTarget struct {
	targettest.Target
	waits int
}

func (t *waitingTarget) WaitUntilEffective(_ context.Context, manifests []map[string]any) error {
	if len(manifests) != 1 || manifests[0]["kind"] != "Namespace" {
		return framework.ErrTimeout
	}
	t.waits++
	return nil
}

// After a step that changes a namespace, the next step waits until the API server acts on its labels.
func TestChangedNamespace(t *testing.T) {
	const version = "v1"
	namespace := scenario.ObjectReference{APIVersion: version, Kind: "Namespace", Name: "kube-public"}
	patch := scenario.Step{Patch: &scenario.Patch{ObjectReference: namespace, Merge: map[string]any{}}}
	dry := patch
	dry.DryRun = true
	for name, test := range map[string]struct {
		step  scenario.Step
		inner bool
		waits int
	}{
		"patch":     {patch, false, 1},
		"dry run":   {dry, false, 0},
		"meanwhile": {patch, true, 0},
		"get":       {scenario.Step{Get: &namespace}, false, 0},
		"other":     {scenario.Step{Patch: &scenario.Patch{ObjectReference: scenario.ObjectReference{APIVersion: version, Kind: "ConfigMap", Name: "a"}, Merge: map[string]any{}}}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := &fakeSandbox{}
			target := &waitingTarget{Target: targettest.Target{Sandbox: sandbox}}
			c := caseOn(sandbox)
			c.target, c.inner = target, test.inner
			if failed := c.step(t.Context(), test.step); failed != nil || target.waits != test.waits {
				t.Errorf("%d waits, %v; want %d", target.waits, failed, test.waits)
			}
		})
	}
}

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
			c.see(schema.GroupKind{Kind: "ConfigMap"}, "", "a")
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

// What is waited for to be gone must have existed before: the scenario was given it, or a response said so.
func TestWaitForWhatNeverExisted(t *testing.T) {
	const webhooks = "ValidatingWebhookConfiguration"
	c := caseOn(gone{})
	c.ID = "id"
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for kind, version := range map[string]string{"ConfigMap": "v1", webhooks: "admissionregistration.k8s.io/v1"} {
		c.seeManifest(map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "given"}})
	}
	for name, request := range map[string]framework.Request{
		"read": {Verb: framework.VerbGet, Name: "read"}, "elsewhere": {Verb: framework.VerbGet, Name: "elsewhere", Namespace: "other"},
		"generated": {Verb: framework.VerbCreate}, "dry": {Verb: framework.VerbCreate, DryRun: true},
	} {
		request.Kind = kind
		result := response(200, "")
		result.Object = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
		c.noteWrite(request, result)
	}
	c.noteWrite(framework.Request{Verb: framework.VerbCreate, Kind: kind, Name: "denied"}, response(403, "denied"))
	for name, says := range map[string]string{
		"ConfigMap given": "", "ConfigMap read": "", "ConfigMap generated": "", "ConfigMap never": "has not seen it",
		"ConfigMap redd": `did you mean "read"?`, "ConfigMap dry": "has not seen it", "ConfigMap denied": "has not seen it",
		webhooks + " id-given": "", webhooks + " given": "has not seen it", // it has another name on the API server
		"ConfigMap elsewhere": "has not seen it", "Secret given": "check its kind, name and namespace",
	} {
		t.Run(name, func(t *testing.T) {
			kind, name, _ := strings.Cut(name, " ")
			version := "v1"
			if kind == webhooks {
				version = "admissionregistration.k8s.io/v1"
			}
			err := c.wait(t.Context(), scenario.Wait{ObjectReference: scenario.ObjectReference{APIVersion: version, Kind: kind, Name: name}, Gone: true})
			switch {
			case says == "" && err != nil:
				t.Errorf("%s %s: %v", kind, name, err)
			case says != "" && (!expect.IsMistake(err) || !strings.Contains(err.Error(), says)):
				t.Errorf("%s %s: got %v; want a mistake with %q", kind, name, err, says)
			}
		})
	}
}

// observedTarget records the calls of plugins.
type observedTarget struct {
	targettest.Target
	capabilities []string
	event        *framework.Audit
	wanted       string // the audit ID of the event
}

func (o observedTarget) Info() framework.TargetInfo {
	return framework.TargetInfo{Capabilities: o.capabilities}
}

func (o observedTarget) Optional() target.Optional {
	return target.Optional{Audit: func(_ context.Context, id string) (*framework.Audit, error) {
		if id != o.wanted {
			return nil, fmt.Errorf("no event %s", id)
		}
		return o.event, nil
	}}
}

// silentSandbox never answers.
type silentSandbox struct{ fakeSandbox }

func (*silentSandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	return framework.Result{AuditID: "lost", Started: time.Unix(1, 0)}, fmt.Errorf("send: %w", framework.ErrNoResponse)
}

// A request without response is a failure if a plugin panicked, otherwise it says nothing.
func TestPanickedPlugin(t *testing.T) {
	call := func(panicked string) *framework.Audit {
		return &framework.Audit{Plugins: framework.Trace{{Phase: framework.Mutating, Observed: true, Started: time.Unix(2, 0), Plugin: &framework.PluginCall{Name: "Owner", Handled: true, Panicked: panicked}}}}
	}
	observes := []string{framework.CapabilityObservedPlugins}
	for name, test := range map[string]struct {
		target observedTarget
		fails  bool
	}{
		"panicked":     {observedTarget{capabilities: observes, event: call("oh no"), wanted: "lost"}, true},
		"no panic":     {observedTarget{capabilities: observes, event: call(""), wanted: "lost"}, false},
		"no event":     {observedTarget{capabilities: observes, event: call("oh no"), wanted: "another"}, false},
		"not recorded": {observedTarget{event: call("oh no"), wanted: "lost"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := caseOn(&silentSandbox{})
			c.target = test.target
			f := c.step(t.Context(), scenario.Step{Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}})
			if f == nil {
				t.Fatal("the step held")
			}
			if test.fails != (f.NothingAboutAdmission() == "") || test.fails != strings.Contains(f.String(), "plugin Owner panicked: oh no") {
				t.Errorf("got %q, infrastructure %q", f, f.NothingAboutAdmission())
			}
			if timeline := c.evidence(f).Timeline; test.fails && (len(timeline) != 1 || timeline[0].Plugin != "Owner" || !timeline[0].Divergent) {
				t.Errorf("the timeline is %+v, want the call that panicked", timeline)
			}
		})
	}
}
