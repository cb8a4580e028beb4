package reference

import (
	"testing"

	"github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/install"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apiserver/admission/initializer"
	gardeninformers "github.com/gardener/gardener/pkg/client/core/informers/externalversions"
	"github.com/gardener/gardener/plugin/pkg/shoot/exposureclass"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	. "github.com/admissiontest/admissiontest/framework/matchers"
)

const exposureClassPlugin = "ShootExposureClass"

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

// exposure is the plugin in a World.
func exposure(t *testing.T, w *fakes.World) *harness.Harness {
	t.Helper()
	return harness.New(t, harness.FromRegister(exposureClassPlugin, exposureclass.Register), harness.WithWorld(w), harness.WithInjectors(gardenFactory(w)))
}

func exposureClass(scheduling *v1beta1.ExposureClassScheduling) *v1beta1.ExposureClass {
	return &v1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Handler: "h", Scheduling: scheduling}
}

func selectingSeeds(labels map[string]string) *v1beta1.ExposureClassScheduling {
	return &v1beta1.ExposureClassScheduling{SeedSelector: &v1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: labels}}}
}

// exposedShoot is a shoot of the class.
func exposedShoot() *core.Shoot {
	class := "test"
	return &core.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "test"}, Spec: core.ShootSpec{ExposureClassName: &class, SeedSelector: &core.SeedSelector{}}}
}

// Two of the twelve cases of gardener's plugin/pkg/shoot/exposureclass/admission_test.go.
func TestExposureClass(t *testing.T) {
	it := func(text string, body func(*WithT, *fakes.World, *harness.Harness, *core.Shoot)) {
		t.Run(text, func(t *testing.T) {
			w := fakes.NewWorld(t, gardenWorld()...)
			body(NewWithT(t), w, exposure(t, w), exposedShoot())
		})
	}
	it("unites match labels", func(g *WithT, world *fakes.World, harness *harness.Harness, shoot *core.Shoot) {
		shoot.Spec.SeedSelector.MatchLabels = map[string]string{"abc": "abc"}
		world.PutCache(exposureClass(selectingSeeds(map[string]string{"xyz": "xyz"})))
		res := harness.Do(framework.Create(shoot))
		g.Expect(res).To(SatisfyAll(BeAdmitted(), HaveMutatedOnly("spec.seedSelector"), BeIdempotent()))
		g.Expect(res.Object.(*core.Shoot).Spec.SeedSelector.MatchLabels).To(HaveLen(2))
	})
	it("refuses labels that conflict", func(g *WithT, world *fakes.World, harness *harness.Harness, shoot *core.Shoot) {
		shoot.Spec.SeedSelector.MatchLabels = map[string]string{"abc": "abc"}
		world.PutCache(exposureClass(selectingSeeds(map[string]string{"abc": "xyz"})))
		g.Expect(harness.Do(framework.Create(shoot))).To(BeRejected(metav1.StatusReasonForbidden).For(core.Resource("shoots"), "test"))
	})
}
