package reference

import (
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/initializer"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Without feature gates, or with nothing, it says that it is initialized, and is off.
func TestFindingMutatingPolicyIsOffWithoutGates(t *testing.T) {
	subject := mutatingPolicyEntry().subject
	w := fakes.NewWorld(t, subject.World...)
	h := harness.New(t, fromKubernetes("MutatingAdmissionPolicy"), harness.WithScheme(subject.Scheme),
		harness.WithInitializer(fakes.NewInitializer(w).Skip("WantsFeatures")), harness.WithWorld(w))
	if changes := h.Do(framework.Create(plainPod("policed", "p"))).MustAllow(t).Changes(); len(changes) > 0 {
		t.Errorf("changed %q: is the defect fixed?", changes)
	}
}

// It is ready before it has read what kinds there are, and until then answers 503.
func TestFindingMutatingPolicyIsReadyTooSoon(t *testing.T) {
	subject := mutatingPolicyEntry().subject
	w := fakes.NewWorld(t, subject.World...)
	slow := &podDescription{hold: make(chan struct{}), read: make(chan struct{})}
	client := describedClient{w.Client(), slow}
	h := harness.New(t, fromKubernetes("MutatingAdmissionPolicy"), harness.WithScheme(subject.Scheme), harness.WithWorld(w),
		harness.WithInjectors(fakes.Inject("WantsExternalKubeClientSet", func(p initializer.WantsExternalKubeClientSet) { p.SetExternalKubeClientSet(client) })))
	res := h.Do(framework.Create(plainPod("policed", "p")))
	close(slow.hold)
	if res.Err == nil || res.Status.Code != http.StatusServiceUnavailable {
		t.Errorf("is the defect fixed?\n%s\nwant 503", res)
	}
}

// Which of two policies mutates first is by chance: it differs from one API server, and
// from one change of a policy, to the next.
func TestFindingPoliciesComeInAnyOrder(t *testing.T) {
	subject := validatingPolicyEntry().subject
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "other.example.com"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: matchPods(admissionv1.Create), Validations: []admissionv1.Validation{{Expression: "false"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	seen := map[string]bool{}
	for range 60 {
		w := fakes.NewWorld(t, append(append([]fakes.Option{}, subject.World...), fakes.WithObjects(policy, binding))...)
		h := harness.New(t, subject.Source, harness.WithWorld(w), harness.WithScheme(subject.Scheme))
		seen[h.Do(framework.Create(withLabel("banned", "x"))).MustReject(t, metav1.StatusReasonInvalid).Status.Message] = true
		if len(seen) > 1 {
			return
		}
	}
	t.Errorf("sixty plugins gave one answer: is the defect fixed? %v", seen)
}
