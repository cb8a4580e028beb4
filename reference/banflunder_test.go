package reference

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/sample-apiserver/pkg/admission/plugin/banflunder"
	"k8s.io/sample-apiserver/pkg/admission/wardleinitializer"
	"k8s.io/sample-apiserver/pkg/apis/wardle"
	"k8s.io/sample-apiserver/pkg/apis/wardle/install"
	"k8s.io/sample-apiserver/pkg/apis/wardle/v1alpha1"
	informers "k8s.io/sample-apiserver/pkg/generated/informers/externalversions"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// wardleWorld is a World of the sample API server's types.
func wardleWorld(objects ...runtime.Object) []fakes.Option {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return []fakes.Option{
		fakes.WithScheme(scheme), fakes.WithObjects(objects...),
		fakes.WithMappings(meta.RESTMapping{
			Resource:         v1alpha1.SchemeGroupVersion.WithResource("fischers"),
			GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind("Fischer"),
			Scope:            meta.RESTScopeRoot,
		}),
	}
}

func internalFlunder(name string) *wardle.Flunder {
	return &wardle.Flunder{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func banFlunderEntry() entry {
	nameless := internalFlunder("")
	nameless.GenerateName = "badname"
	return entry{subject: contract.Subject{
		Source: harness.FromRegister(banFlunder, banflunder.Register),
		World: wardleWorld(
			&v1alpha1.Fischer{ObjectMeta: metav1.ObjectMeta{Name: "f"}, DisallowedFlunders: []string{"badname"}},
			&v1alpha1.Fischer{ObjectMeta: metav1.ObjectMeta{Name: "g"}, DisallowedFlunders: []string{"worse", "worst"}}),
		Inject: func(w *fakes.World) []fakes.Injector { return []fakes.Injector{wardleFactory(w, &v1alpha1.Fischer{})} },
		Allow: []framework.Request{
			framework.Create(internalFlunder("goodname")), framework.Create(nameless),
			framework.UpdateWith(internalFlunder("badname"), func(f *wardle.Flunder) { f.Labels = map[string]string{"a": "b"} }),
			framework.Create(&wardle.Fischer{ObjectMeta: metav1.ObjectMeta{Name: "badname"}}),
		},
		Reject: []framework.Request{framework.Create(internalFlunder("badname")), framework.CreateOnUpdate(internalFlunder("worst"))},
	}, waivers: []waiver{
		{"H3", "it only refuses, and does so in Admit: later plugins and webhooks can still change the name; historical", "staging/src/k8s.io/sample-apiserver/pkg/admission/plugin/banflunder/admission.go:52"},
	}}
}

// wardleFactory is what a project with its own informers writes once.
func wardleFactory(w *fakes.World, objects ...runtime.Object) fakes.Injector {
	factory := informers.NewSharedInformerFactory(nil, 0)
	fakes.Preload(w, factory, objects...)
	return fakes.Inject("WantsInternalWardleInformerFactory", func(p wardleinitializer.WantsInternalWardleInformerFactory) {
		p.SetInternalWardleInformerFactory(factory)
	})
}
