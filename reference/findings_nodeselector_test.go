package reference

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

func TestFindingPodNodeSelectorRefusesWith500(t *testing.T) {
	h := harnessOf(t, "PodNodeSelector")
	mustBe500(t, h.Do(framework.Create(plainPod("broken", "p"))), metav1.StatusReasonUnknown)
	mustBe500(t, h.Do(framework.Create(plainPod("absent", "p"))), metav1.StatusReasonInternalError)
}

// It ignores a configuration with a mistake, and then runs without any selector.
func TestFindingPodNodeSelectorPassesOverItsConfiguration(t *testing.T) {
	broken := "podNodeSelectorPluginConfig:\n  - clusterDefaultNodeSelector: zone=a\n"
	h := harness.New(t, fromKubernetes("PodNodeSelector"), harness.WithConfig(broken), harness.WithWorld(harnessOf(t, "PodNodeSelector").World()),
		harness.WithScheme(entries()["PodNodeSelector"]().subject.Scheme))
	if changes := h.Do(framework.Create(plainPod("plain", "p"))).MustAllow(t).Changes(); len(changes) > 0 {
		t.Errorf("changed %q: is the defect fixed?", changes)
	}
}
