package reference

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
)

// Before the cache of classes has synced, an ingress goes without the class that there is.
func TestFindingDefaultIngressClassDoesNotWait(t *testing.T) {
	h := harnessOf(t, "DefaultIngressClass", fakes.Unsynced(&networkingv1.IngressClass{}))
	res := h.Do(framework.Create(ingress())).MustAllow(t)
	if class := res.Object.(*networking.Ingress).Spec.IngressClassName; class != nil {
		t.Errorf("got class %q: is the defect fixed?", *class)
	}
}

// What is written through the pointer in an ingress renames the class in the cache.
func TestFindingDefaultIngressClassSharesTheCache(t *testing.T) {
	h := harnessOf(t, "DefaultIngressClass")
	cached := h.World().Snapshot()
	attributes, err := h.Attributes(framework.Create(ingress()), framework.Mutating)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(t.Context(), attributes, framework.Mutating); err != nil {
		t.Fatal(err)
	}
	*attributes.GetObject().(*networking.Ingress).Spec.IngressClassName = "renamed"
	if len(cached.Mutations()) == 0 {
		t.Error("the cache has not changed: is the defect fixed?")
	}
}

// An update that takes an init container away makes it panic. The API server validates
// updates before, so that none such arrives; the helper library has other callers.
func TestFindingDeclaredFeaturesPanicsAtFewerContainers(t *testing.T) {
	old := podWith("default", "p", func(pod *core.Pod) {
		pod.Spec.NodeName = "new"
		pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1"}}
	})
	mustPanic(t, harnessOf(t, "NodeDeclaredFeatureValidator"), framework.UpdateWith(old, generation(func(pod *core.Pod) { pod.Spec.InitContainers = nil })))
}

// Its message names the type of the old object where it means that of the new one.
func TestFindingTrustBundleNamesTheWrongType(t *testing.T) {
	h := harnessOf(t, "ClusterTrustBundleAttest")
	bundles := schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"}
	request := framework.Update(plainPod("default", "p"), podWith("default", "p", labelPod)).
		WithResource(bundles).Impossible("the type is what it is about")
	h.Do(request).MustReject(t, metav1.StatusReasonForbidden, "got: *core.Pod")
	request = framework.Create(plainPod("default", "p")).
		WithResource(bundles).Impossible("the type is what it is about")
	h.Do(request).MustReject(t, metav1.StatusReasonForbidden, "got: <nil>") // it got a Pod
}
