package harness_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// knownTeam refuses pods of teams that do not exist. A team is a cluster-scoped custom resource, which
// the plugin reads with an informer of its own.
type knownTeam struct {
	*admission.Handler
	drained <-chan struct{}
	teams   cache.GenericLister
}

// SetDrainedNotification gets when the informer must end. An API server calls it first.
func (p *knownTeam) SetDrainedNotification(drained <-chan struct{}) { p.drained = drained }

// SetDynamicClient makes the informer and starts it.
func (p *knownTeam) SetDynamicClient(client dynamic.Interface) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	teams := factory.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "teams"})
	p.teams = teams.Lister()
	p.SetReadyFunc(teams.Informer().HasSynced)
	factory.Start(p.drained)
}

func (p *knownTeam) ValidateInitialization() error {
	if p.teams == nil {
		return errors.New("missing dynamic client")
	}
	return nil
}

func (p *knownTeam) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	pod, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	if _, err := p.teams.Get(pod.GetLabels()["team"]); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// A plugin with a custom resource and an informer of its own. WithMappings adds the resource to the
// World. The World serves the informer as an API server does.
func Example_customResource() {
	t := printer{} // in a test, its *testing.T
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	blue := &unstructured.Unstructured{}
	blue.SetGroupVersionKind(group.WithKind("Team"))
	blue.SetName("blue")

	w := fakes.NewWorld(t, fakes.WithObjects(blue), fakes.WithMappings(meta.RESTMapping{
		Resource: group.WithResource("teams"), GroupVersionKind: group.WithKind("Team"), Scope: meta.RESTScopeRoot,
	}))
	h := harness.New(t, harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return &knownTeam{Handler: admission.NewHandler(admission.Create)}, nil
	}), harness.WithWorld(w))
	pod := func(team string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", Labels: map[string]string{"team": team}}}
	}

	fmt.Println(h.Do(framework.Create(pod("blue"))).MustAllow(t))
	fmt.Println(h.Do(framework.Create(pod("red"))).MustReject(t, metav1.StatusReasonForbidden, `"red" not found`).Status.Message)
	fmt.Println(h.Do(framework.Create(blue)).MustAllow(t))
	// Output:
	// create v1 pods default/p by admissiontest
	// actual:   admitted (201)
	// pods "p" is forbidden: teams.example.com "red" not found
	// create example.com/v1 teams blue by admissiontest
	// actual:   admitted (201)
}
