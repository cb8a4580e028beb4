package reference

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// It panics on a request without a user. Every request to an API server has a user, unless
// authentication is disabled.
func TestFindingPodSecurityPanicsWithoutUser(t *testing.T) {
	h := harnessOf(t, "PodSecurity")
	of, err := h.Attributes(framework.Create(plainPod("restricted", "p")), framework.Validating)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := admission.NewAttributesRecord(of.GetObject(), nil, of.GetKind(), of.GetNamespace(), of.GetName(), of.GetResource(), "", of.GetOperation(), of.GetOperationOptions(), false, nil)
	var panicked *harness.PanicError
	if _, err := h.Call(t.Context(), anonymous, framework.Validating); !errors.As(err, &panicked) {
		t.Errorf("%v, want a panic: is the defect fixed?", err)
	}
}

// Before the cache of pods has synced, there is no warning about existing pods that violate a
// stricter level. The plugin neither waits nor says that it does not know.
func TestFindingPodSecurityDoesNotWarnUntilSynced(t *testing.T) {
	stricter := framework.UpdateWith(internalNamespace("open"), func(n *core.Namespace) { n.Labels = leveled("restricted", "enforce") })
	if warned := harnessOf(t, "PodSecurity").Do(stricter).MustAllow(t).Warnings; len(warned) == 0 {
		t.Fatal("it does not warn at all: the test shows nothing")
	}
	if warned := harnessOf(t, "PodSecurity", fakes.Unsynced(&corev1.Pod{})).Do(stricter).MustAllow(t).Warnings; len(warned) > 0 {
		t.Errorf("warned of %q: is the defect fixed?", warned)
	}
}
