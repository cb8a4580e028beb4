package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

// trail notes the phases and their records.
type trail struct {
	steps   []string
	records []admission.Attributes
}

func (s *trail) note(step string) call {
	return func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		if a.GetReinvocationContext().IsReinvoke() {
			step := step + " again"
			s.steps = append(s.steps, step)
		} else {
			s.steps = append(s.steps, step)
		}
		s.records = append(s.records, a)
		if a.GetReinvocationContext() != nil && step == "admit" {
			a.GetReinvocationContext().SetShouldReinvoke()
		}
		return nil
	}
}

// TestDo is about phases, records and copies.
func TestDo(t *testing.T) {
	update := framework.UpdateWith(pod("p"), func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	for _, test := range []struct {
		name    string
		request framework.Request
		same    bool // one record for both phases
	}{
		{"create", framework.Create(pod("p")), false},
		{"update", update, false},
		{"delete", framework.Delete(pod("p")), true},
		{"connect", framework.Connect(pod("p"), "exec", &corev1.PodExecOptions{}), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := &trail{}
			result := harness.New(t, plugin(seen.note("admit"), seen.note("validate"))).Do(test.request).MustAllow(t)
			last := "validate"
			if test.same {
				last = "validate again" // as on an API server, the record still says that it is a reinvocation
			}
			if diff := cmp.Diff([]string{"admit", "admit again", last}, seen.steps); diff != "" {
				t.Error(diff)
			}
			if !result.Reinvoked {
				t.Error("Reinvoked is false")
			}
			if seen.records[0] != seen.records[1] {
				t.Error("the reinvocation has another record")
			}
			if got := seen.records[1] == seen.records[2]; got != test.same {
				t.Errorf("the phases share a record: %t, want %t", got, test.same)
			}
			if object := seen.records[0].GetObject(); object != nil && test.name != "connect" && object == seen.records[2].GetObject() {
				t.Error("Validate has no copy of the object")
			}
			if old := seen.records[0].GetOldObject(); old != nil && !test.same && old == seen.records[2].GetOldObject() {
				t.Error("Validate has no copy of the old object")
			}
		})
	}
}

// TestDoSkips is about what an API server does not call.
func TestDoSkips(t *testing.T) {
	seen := &trail{}
	h := harness.New(t, factory(&scripted{admission.NewHandler(admission.Update), seen.note("admit"), seen.note("validate")}, nil))
	h.Do(framework.Create(pod("p"))).MustIgnore(t)
	if len(seen.steps) > 0 {
		t.Errorf("a plugin that handles updates was called for a create: %v", seen.steps)
	}
	refusing := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		return admission.NewForbidden(a, errors.New("no"))
	}
	seen = &trail{}
	harness.New(t, plugin(refusing, seen.note("validate"))).Do(framework.Create(pod("p"))).MustReject(t, metav1.StatusReasonForbidden)
	if len(seen.steps) > 0 {
		t.Error("what Admit has refused was validated")
	}
}

// TestPhasesAlone is about Admit, Validate and Call.
func TestPhasesAlone(t *testing.T) {
	seen := &trail{}
	h := harness.New(t, plugin(seen.note("admit"), seen.note("validate")))
	h.Admit(framework.Create(pod("p"))).MustAllow(t)
	h.Validate(framework.Create(pod("p"))).MustAllow(t)
	if diff := cmp.Diff([]string{"admit", "validate"}, seen.steps); diff != "" {
		t.Error(diff)
	}
	unhandled := harness.New(t, factory(&scripted{admission.NewHandler(), seen.note("admit"), seen.note("validate")}, nil))
	a, err := h.Attributes(framework.Create(pod("p")), framework.Mutating)
	if err != nil {
		t.Fatal(err)
	}
	seen.steps = nil
	if _, err := unhandled.Call(t.Context(), a, framework.Mutating); err != nil || len(seen.steps) != 1 {
		t.Errorf("Call asks Handles: %v, %v", seen.steps, err)
	}
	if _, err := unhandled.Call(t.Context(), a, "third"); err == nil {
		t.Error("Call knows a third phase")
	}
	if _, err := unhandled.Call(t.Context(), nil, framework.Mutating); err == nil {
		t.Error("Call takes nil attributes")
	}
}

// TestForeignMutation is about changes by a plugin or webhook that runs after the plugin.
func TestForeignMutation(t *testing.T) {
	var hosts []string
	admit := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		hosts = append(hosts, fmt.Sprint(a.GetObject().(*corev1.Pod).Spec.Hostname, a.GetReinvocationContext().IsReinvoke()))
		return nil
	}
	h := harness.New(t, plugin(admit, nil), harness.WithForeignMutation(func(object runtime.Object) { object.(*corev1.Pod).Spec.Hostname = "h" }))
	if result := h.Do(framework.Create(pod("p"))).MustAllow(t); !result.Reinvoked {
		t.Error("Reinvoked is false")
	}
	if diff := cmp.Diff([]string{"false", "htrue"}, hosts); diff != "" {
		t.Error(diff)
	}
}

// TestStatus is about what a client sees.
func TestStatus(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		code int32
		want metav1.StatusReason
	}{
		{"admitted", nil, 201, ""},
		{"a Status", apierrors.NewBadRequest("no"), 400, metav1.StatusReasonBadRequest},
		{"no Status", errors.New("no"), 500, metav1.StatusReasonUnknown},
		{"a wrapped Status", fmt.Errorf("wrapped: %w", apierrors.NewBadRequest("no")), 500, metav1.StatusReasonUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := harness.New(t, plugin(nil, func(context.Context, admission.Attributes, admission.ObjectInterfaces) error { return test.err })).Run(t.Context(), framework.Create(pod("p")))
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Code != test.code || got.Status.Reason != test.want || got.Allowed() != (test.err == nil) || !errors.Is(got.Err, test.err) {
				t.Errorf("got %v, %v", got.Status, got.Err)
			}
		})
	}
	if got := harness.New(t, plugin(nil, nil)).Do(framework.Delete(pod("p"))).Status; got.Code != 200 || got.Status != metav1.StatusSuccess {
		t.Errorf("a delete has %v", got)
	}
}

// TestSideChannels is about warnings, audit annotations and the context.
func TestSideChannels(t *testing.T) {
	say := func(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		warning.AddWarning(ctx, "", "mind")
		audit.AddAuditAnnotation(ctx, "example.com/context", "c")
		if err := a.AddAnnotation("example.com/record", "r"); err != nil {
			return err
		}
		who, _ := apirequest.UserFrom(ctx)
		info, _ := apirequest.RequestInfoFrom(ctx)
		return a.AddAnnotation("example.com/who", who.GetName()+" "+info.Verb+" "+apirequest.NamespaceValue(ctx))
	}
	h := harness.New(t, plugin(say, say))
	want := map[string]string{"example.com/context": "c", "example.com/record": "r", "example.com/who": "admissiontest create test"}
	for range 2 { // nothing stays from one Request to the next
		result := h.Do(framework.Create(pod("p"))).MustAllow(t)
		if diff := cmp.Diff(want, result.Audit.Annotations); diff != "" {
			t.Error(diff)
		}
		if !slices.Equal(result.Warnings, []string{"mind"}) {
			t.Errorf("warnings: %q", result.Warnings)
		}
	}
}

// TestPanics is about plugins that panic: an error that names the place.
func TestPanics(t *testing.T) {
	dereference := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		var nobody *corev1.Pod
		a.GetObject().(*corev1.Pod).Name = nobody.Name
		return nil
	}
	for name, source := range map[string]harness.Source{"Admit": plugin(dereference, nil), "Validate": plugin(nil, dereference)} {
		t.Run(name, func(t *testing.T) {
			_, err := harness.New(t, source).Run(t.Context(), framework.Create(pod("p")))
			var panicked *harness.PanicError
			if !errors.As(err, &panicked) {
				t.Fatalf("not a PanicError: %v", err)
			}
			if panicked.In != name || !strings.Contains(panicked.Frame, "harness_test.TestPanics") || !strings.Contains(panicked.Stack, "run_test.go") {
				t.Errorf("in %s, frame %s", panicked.In, panicked.Frame)
			}
			mustHave(t, err.Error(), "carry out create Pod test/p: "+name+" panicked at ", "run_test.go:", "nil pointer dereference")
			failed := record(func(r *recorder) { harness.New(r, source).Do(framework.Create(pod("p"))) })
			mustHave(t, failed.fatal, name+" panicked at ")
		})
	}
}

// TestRequestIsNotWrittenTo has a plugin change all it gets.
func TestRequestIsNotWrittenTo(t *testing.T) {
	scribble := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		for _, object := range []runtime.Object{a.GetObject(), a.GetOldObject()} {
			if p, ok := object.(*corev1.Pod); ok {
				p.Labels["a"], p.Spec.Tolerations[0].Key = "changed", "changed"
			}
		}
		return nil
	}
	edit := func(p *corev1.Pod) {
		p.Labels, p.Spec.Tolerations = map[string]string{"a": "b"}, []corev1.Toleration{{Key: "k"}}
	}
	request := framework.Update(pod("p", edit), pod("p", edit, func(p *corev1.Pod) { p.Spec.NodeName = "n" }))
	object, old := request.Object.DeepCopyObject(), request.InProcess.OldObject.DeepCopyObject()
	result := harness.New(t, plugin(scribble, scribble)).Do(request).MustAllow(t)
	if diff := cmp.Diff(object, request.Object) + cmp.Diff(old, request.InProcess.OldObject) + cmp.Diff(object, result.Before); diff != "" {
		t.Error(diff)
	}
	if result.Old.(*corev1.Pod).Labels["a"] != "changed" {
		t.Error("Old is not as the plugin left it")
	}
}
