package reference

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// Validate sees the pod as it is when a webhook has set the policy back.
func TestFindingAlwaysPullImagesRefusesWith500(t *testing.T) {
	mustBe500(t, harnessOf(t, "AlwaysPullImages").Validate(framework.Create(plainPod("default", "p"))), metav1.StatusReasonUnknown)
}
