package harness_test

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// teamStays refuses updates that change the label team.
type teamStays struct{ *admission.Handler }

func (*teamStays) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	old, before := a.GetOldObject().(*corev1.Pod)
	pod, after := a.GetObject().(*corev1.Pod)
	if before && after && old.Labels["team"] != pod.Labels["team"] {
		return admission.NewForbidden(a, errors.New("the team of a pod cannot change"))
	}
	return nil
}

// UpdateWith makes an update from the stored object and a function that edits a copy of it. The
// plugin gets both.
func ExampleHarness_Do_update() {
	t := printer{} // in a test, its *testing.T

	h := harness.New(t, harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return &teamStays{admission.NewHandler(admission.Update)}, nil
	}))
	stored := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", Labels: map[string]string{"team": "blue"}}}

	h.Do(framework.UpdateWith(stored, func(p *corev1.Pod) { p.Labels["other"] = "x" })).MustAllow(t)
	h.Do(framework.UpdateWith(stored, func(p *corev1.Pod) { p.Labels["team"] = "red" })).MustAllow(t)
	// Output:
	// update v1 pods default/p by admissiontest
	// expected: admitted
	// actual:   403 Forbidden: pods "p" is forbidden: the team of a pod cannot change
}
