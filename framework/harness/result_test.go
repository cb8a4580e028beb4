package harness_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
)

// TestFailureTexts pins what a failing test prints.
func TestFailureTexts(t *testing.T) {
	refuse := func(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		warning.AddWarning(ctx, "", "mind")
		return admission.NewForbidden(a, errors.New("no"))
	}
	plain := func(context.Context, admission.Attributes, admission.ObjectInterfaces) error { return errors.New("no") }
	for _, test := range []struct {
		name   string
		source harness.Source
		assert func(*recorder, *harness.Harness)
		want   string
	}{
		{"refused", plugin(nil, refuse), func(r *recorder, h *harness.Harness) { h.Do(framework.Create(pod("p"))).MustAllow(r) },
			`create v1 pods test/p by admissiontest
expected: admitted
actual:   403 Forbidden: pods "p" is forbidden: no
warning:  mind`},
		{"refused without a Status", plugin(nil, plain), func(r *recorder, h *harness.Harness) {
			h.Do(framework.DeleteCollection(pod("p")).WithDryRun().As("jane")).MustAllow(r)
		},
			`deletecollection v1 pods test/(no name) by jane (dry run)
expected: admitted
actual:   500 Unknown: no
          (the plugin's error is a *errors.errorString, which has no Status: use admission.NewForbidden or k8s.io/apimachinery/pkg/api/errors)`},
		{"admitted", plugin(nil, nil), func(r *recorder, h *harness.Harness) {
			h.Do(framework.Connect(pod("p"), "exec", &corev1.PodExecOptions{})).MustReject(r, metav1.StatusReasonForbidden, "a", "b")
		},
			`connect v1 pods/exec test/p by admissiontest
expected: rejected as Forbidden, with a message that contains "a" and "b"
actual:   admitted (200)`},
		{"another reason", plugin(nil, refuse), func(r *recorder, h *harness.Harness) {
			h.Do(framework.Create(pod("p"))).MustReject(r, metav1.StatusReasonInvalid)
		},
			`create v1 pods test/p by admissiontest
expected: rejected as Invalid
actual:   403 Forbidden: pods "p" is forbidden: no
warning:  mind`},
		{"another message", plugin(nil, refuse), func(r *recorder, h *harness.Harness) {
			h.Do(framework.Create(pod("p"))).MustReject(r, metav1.StatusReasonForbidden, "is forbidden", "yes")
		},
			`create v1 pods test/p by admissiontest
expected: rejected as Forbidden, with a message that contains "is forbidden" and "yes"
actual:   403 Forbidden: pods "p" is forbidden: no
warning:  mind`},
		{"another type", plugin(nil, nil), func(r *recorder, h *harness.Harness) {
			harness.Mutated[*corev1.Node](r, h.Do(framework.Create(pod("p"))))
		},
			`create v1 pods test/p by admissiontest
expected: an object of type *v1.Node, got *v1.Pod
actual:   admitted (201)`},
		{"not handled", updatesOnly(), func(r *recorder, h *harness.Harness) { h.Do(framework.Create(pod("p"))).MustAllow(r) },
			`create v1 pods test/p by admissiontest
expected: admitted
actual:   the plugin does not handle CREATE, so an API server admits the request without a call (if that is intended, use MustIgnore)`},
		{"without the phase", updatesOnly(), func(r *recorder, h *harness.Harness) {
			h.Admit(framework.UpdateWith(pod("p"), func(*corev1.Pod) {})).MustAllow(r)
		},
			`update v1 pods test/p by admissiontest
expected: admitted
actual:   the plugin has no Admit, so an API server admits the request without a call (if that is intended, use MustIgnore)`},
		{"called", plugin(nil, nil), func(r *recorder, h *harness.Harness) { h.Do(framework.Create(pod("p"))).MustIgnore(r) },
			`create v1 pods test/p by admissiontest
expected: no call of the plugin
actual:   admitted (201)`},
		{"nothing", plugin(nil, nil), func(r *recorder, _ *harness.Harness) { harness.Result{}.MustAllow(r) },
			`a Result that no Harness made
expected: admitted
actual:   not carried out`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := harness.New(t, test.source)
			if diff := cmp.Diff(test.want, record(func(r *recorder) { test.assert(r, h) }).fatal); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// updatesOnly is a plugin with Validate that handles only updates.
func updatesOnly() harness.Source {
	return harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return onlyValidates{admission.NewHandler(admission.Update)}, nil
	})
}

type onlyValidates struct{ *admission.Handler }

func (onlyValidates) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return nil
}

// TestPasses has the assertions hold.
func TestPasses(t *testing.T) {
	refuse := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		if a.GetUserInfo().GetName() == "jane" {
			return nil
		}
		return admission.NewForbidden(a, errors.New("not for you"))
	}
	h := harness.New(t, plugin(nil, refuse))
	h.Do(framework.Create(pod("p"))).MustReject(t, metav1.StatusReasonForbidden, "not", "you")
	harness.New(t, updatesOnly()).Do(framework.Create(pod("p"))).MustIgnore(t)
	result := h.Do(framework.Create(pod("p")).As("jane")).MustAllow(t)
	if got := harness.Mutated[*corev1.Pod](t, result).Name; got != "p" {
		t.Error(got)
	}
}

// TestAgain is about reinvocations by hand.
func TestAgain(t *testing.T) {
	appends := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		p := a.GetObject().(*corev1.Pod)
		key := "first"
		if a.GetReinvocationContext().IsReinvoke() {
			key = "again"
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key})
		return nil
	}
	once := harness.New(t, plugin(appends, nil)).Do(framework.Create(pod("p"))).MustAllow(t)
	again := once.Again().MustAllow(t)
	if diff := cmp.Diff([]string{"spec.tolerations[0]"}, once.Changes()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"spec.tolerations[1]"}, again.Changes()); diff != "" {
		t.Error(diff)
	}
	if got := harness.Mutated[*corev1.Pod](t, again).Spec.Tolerations[1].Key; got != "again" {
		t.Errorf("not a reinvocation: %q", got)
	}
	if n := len(harness.Mutated[*corev1.Pod](t, once).Spec.Tolerations); n != 1 {
		t.Errorf("Again has written to the first Result: %d tolerations", n)
	}
}
