package reference

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/sample-apiserver/pkg/admission/plugin/banflunder"
	"k8s.io/sample-apiserver/pkg/admission/wardleinitializer"
	"k8s.io/sample-apiserver/pkg/apis/wardle"
	"k8s.io/sample-apiserver/pkg/apis/wardle/v1alpha1"
	"k8s.io/sample-apiserver/pkg/apiserver"
	informers "k8s.io/sample-apiserver/pkg/generated/informers/externalversions"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// The three scenarios of k8s.io/sample-apiserver/pkg/admission/plugin/banflunder, whose
// test has 101 lines of code.
func TestBanFlunder(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithScheme(apiserver.Scheme))
	h := harness.New(t, harness.FromRegister(banFlunder, banflunder.Register), harness.WithWorld(w),
		harness.WithInjectors(wardleFactory(w, &v1alpha1.Fischer{ObjectMeta: metav1.ObjectMeta{Name: "f"}, DisallowedFlunders: []string{"badname"}})))
	flunder := func(n string) *wardle.Flunder { return &wardle.Flunder{ObjectMeta: metav1.ObjectMeta{Name: n}} }
	h.Do(framework.Create(flunder("badname"))).MustReject(t, metav1.StatusReasonForbidden, "may not be used")
	h.Do(framework.Create(flunder("goodname"))).MustAllow(t)
	h.Do(framework.Create(&wardle.Fischer{ObjectMeta: metav1.ObjectMeta{Name: "badname"}})).MustAllow(t)
}

// wardleFactory is what a project with its own informers writes once.
func wardleFactory(w *fakes.World, objects ...runtime.Object) fakes.Injector {
	factory := informers.NewSharedInformerFactory(nil, 0)
	fakes.Preload(w, factory, objects...)
	return fakes.Inject("WantsInternalWardleInformerFactory", func(p wardleinitializer.WantsInternalWardleInformerFactory) {
		p.SetInternalWardleInformerFactory(factory)
	})
}
