package fakes_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/component-base/featuregate"

	"github.com/admissiontest/admissiontest/fakes"
)

// WantsColour is an interface of a project's own initializer. The plugin gets the value from
// Inject as it gets it from that initializer.
func ExampleInject() {
	t := exampleT{}
	plugin := &colourPlugin{base: base{admission.NewHandler(admission.Create)}}

	injector := fakes.Inject("WantsColour", func(p interface{ SetColour(string) }) { p.SetColour("blue") })
	fakes.NewInitializer(fakes.NewWorld(t), injector).Initialize(plugin)

	fmt.Println(plugin.colour)
	// Output: blue
}

// Preload puts objects into a generated informer factory, of any project. A plugin that gets the
// factory reads them with its lister, without a start or a wait.
func ExamplePreload() {
	t := exampleT{}
	factory := informers.NewSharedInformerFactory(nil, 0) // in a project, its own generated factory

	fakes.Preload(fakes.NewWorld(t), factory, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})

	found, err := factory.Core().V1().Namespaces().Lister().Get("default")
	fmt.Println(found.Name, err, factory.Core().V1().Namespaces().Informer().HasSynced())
	// Output: default <nil> true
}

// WithMappings adds a custom resource that is cluster-scoped. Its objects are unstructured.
func ExampleWithMappings() {
	t := exampleT{}
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	gizmo := &unstructured.Unstructured{}
	gizmo.SetGroupVersionKind(group.WithKind("Gizmo"))
	gizmo.SetName("a")

	w := fakes.NewWorld(t, fakes.WithObjects(gizmo), fakes.WithMappings(meta.RESTMapping{
		Resource: group.WithResource("gizmos"), GroupVersionKind: group.WithKind("Gizmo"), Scope: meta.RESTScopeRoot,
	}))

	found, err := w.Dynamic().Resource(group.WithResource("gizmos")).Get(context.Background(), "a", metav1.GetOptions{})
	fmt.Println(found.GetKind(), found.GetName(), err)
	// Output: Gizmo a <nil>
}

// gatedPlugin has a feature gate.
type gatedPlugin struct {
	base

	strict bool
}

func (p *gatedPlugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.strict = gates.Enabled("ExampleStrict")
}

// The plugin gets the feature gates as from an API server. The global gates do not change, so that
// tests with other gates can run at the same time. The project of the plugin registers its gates, in
// most projects when its package is imported.
func ExampleGates() {
	t := exampleT{}
	plugin := &gatedPlugin{}
	_ = utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		"ExampleStrict": {PreRelease: featuregate.Alpha},
	})

	gates := fakes.Gates(map[featuregate.Feature]bool{"ExampleStrict": true})
	fakes.NewInitializer(fakes.NewWorld(t), fakes.InjectFeatureGates(gates)).Initialize(plugin)

	fmt.Println(plugin.strict)
	// Output: true
}
