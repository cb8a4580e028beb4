package reference

import (
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/plugin/pkg/shoot/exposureclass"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	. "github.com/admissiontest/admissiontest/framework/matchers"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// tolerating is a class that adds a toleration, and one that adds an expression.
func tolerating() *v1beta1.ExposureClass {
	return exposureClass(&v1beta1.ExposureClassScheduling{Tolerations: []v1beta1.Toleration{{Key: "seed.example.com/special"}}})
}

func expressing() *v1beta1.ExposureClass {
	return exposureClass(&v1beta1.ExposureClassScheduling{SeedSelector: &v1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpExists}},
	}}})
}

// Reinvoked, it refuses the toleration that it has added itself, and adds the expression
// a second time.
func TestFindingExposureClassIsNotIdempotent(t *testing.T) {
	g := NewWithT(t)
	w := fakes.NewWorld(t, gardenWorld(tolerating())...)
	res := exposure(t, w).Do(framework.Create(exposedShoot()))
	g.Expect(res).To(SatisfyAll(BeAdmitted(), HaveMutatedOnly("spec.tolerations"), Not(BeIdempotent())))
	g.Expect(res.Again()).To(BeRejected(metav1.StatusReasonForbidden).Mentioning("conflicts"))

	w = fakes.NewWorld(t, gardenWorld(expressing())...)
	res = exposure(t, w).Do(framework.Create(exposedShoot()))
	g.Expect(res).To(SatisfyAll(BeAdmitted(), Not(BeIdempotent())))
	g.Expect(res.Again().Object.(*core.Shoot).Spec.SeedSelector.MatchExpressions).To(HaveLen(2))
}

// The contract suite finds this defect and the shared list of ready functions.
func TestFindingExposureClassBreaksContract(t *testing.T) {
	report := contract.Check(contract.Subject{
		Name: exposureClassPlugin, Source: harness.FromRegister(exposureClassPlugin, exposureclass.Register),
		World:  gardenWorld(tolerating()),
		Inject: func(w *fakes.World) []fakes.Injector { return []fakes.Injector{gardenFactory(w)} },
		Allow:  []framework.Request{framework.Create(exposedShoot())},
	}, contract.Only("A1", "K3"))
	for i, says := range []string{"refused it", "waits for the caches of another plugin"} {
		if outcome := report.Outcomes[i]; outcome.Verdict != framework.Fail || !strings.Contains(outcome.Reason, says) {
			t.Errorf("%s is %s (%s), want fail with %q: is the defect fixed?", outcome.Rule.ID, outcome.Verdict, outcome.Reason, says)
		}
	}
}

// Each instance waits for the caches of all that the process ever had.
func TestFindingExposureClassSharesReadyFuncs(t *testing.T) {
	never := fakes.NewWorld(t, append(gardenWorld(), fakes.Unsynced(&v1beta1.ExposureClass{}))...)
	defer never.MarkSynced()
	exposure(t, never)
	h := exposure(t, fakes.NewWorld(t, gardenWorld(tolerating())...))
	done := make(chan harness.Result, 1)
	go func() { done <- h.Do(framework.Create(exposedShoot())) }()
	if !never.WaitHasSynced(t.Context(), 1) {
		t.Error("the caches of another plugin were not asked for: is the defect fixed?")
	}
	never.MarkSynced()
	(<-done).MustAllow(t)
}
