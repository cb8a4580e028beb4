package reference

import (
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/install"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apiserver/admission/initializer"
	gardeninformers "github.com/gardener/gardener/pkg/client/core/informers/externalversions"
	"github.com/gardener/gardener/plugin/pkg/shoot/exposureclass"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// gardenWorld is a World of gardener's core types.
func gardenWorld(objects ...runtime.Object) []fakes.Option {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return []fakes.Option{fakes.WithScheme(scheme), fakes.WithObjects(objects...), fakes.WithMappings(meta.RESTMapping{
		Resource:         v1beta1.SchemeGroupVersion.WithResource("exposureclasses"),
		GroupVersionKind: v1beta1.SchemeGroupVersion.WithKind("ExposureClass"),
		Scope:            meta.RESTScopeRoot,
	})}
}

// gardenFactory is what a project with its own informers writes once.
func gardenFactory(w *fakes.World) fakes.Injector {
	factory := gardeninformers.NewSharedInformerFactory(nil, 0)
	fakes.Preload(w, factory, &v1beta1.ExposureClass{})
	return fakes.Inject("WantsCoreInformerFactory", func(p initializer.WantsCoreInformerFactory) { p.SetCoreInformerFactory(factory) })
}

// Reinvoked, gardener's ShootExposureClass refuses the toleration that it has added itself. Each instance waits for the
// caches of all that the process ever had.
func TestFindingExposureClassBreaksContract(t *testing.T) {
	const name, class = "ShootExposureClass", "test"
	special := &v1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Handler: "h", Scheduling: &v1beta1.ExposureClassScheduling{
		Tolerations: []v1beta1.Toleration{{Key: "seed.example.com/special"}},
	}}
	exposed := class
	shoot := &core.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "test"}, Spec: core.ShootSpec{ExposureClassName: &exposed, SeedSelector: &core.SeedSelector{}}}
	report := contract.Check(contract.Subject{
		Name: name, Source: harness.FromRegister(name, exposureclass.Register), World: gardenWorld(special),
		Inject: func(w *fakes.World) []fakes.Injector { return []fakes.Injector{gardenFactory(w)} },
		Allow:  []framework.Request{framework.Create(shoot)},
	}, contract.Only("A1", "K3"))
	for i, says := range []string{"refused it", "waits for the caches of another plugin"} {
		if outcome := report.Outcomes[i]; outcome.Verdict != framework.Fail || !strings.Contains(outcome.Reason, says) {
			t.Errorf("%s is %s (%s), want fail with %q: is the defect fixed?", outcome.Rule.ID, outcome.Verdict, outcome.Reason, says)
		}
	}
}
