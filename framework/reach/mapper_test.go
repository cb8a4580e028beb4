package reach_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/reach"
)

func TestNewMapper(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "events", Kind: "Event"}, {Name: "pods", Kind: "Pod"}}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "events", Kind: "Event"}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments/scale", Group: "autoscaling", Version: "v1", Kind: "Scale"}}},
		// Discovery has the versions in another order, or not yet.
		{GroupVersion: crdGroup + "/v3", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget"}, {Name: "widgets/status", Kind: "Widget"}}},
		{GroupVersion: crdGroup + "/v1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget"}}},
	}
	mapper := reach.NewMapper(lists, definition("widgets", "Widget", "Namespaced", "v1", "v2", "v3"))
	for _, test := range []struct{ group, version, resource, subresource, equivalent, kind string }{
		{"", "v1", "pods", "", "[/v1, Resource=pods]", "/v1, Kind=Pod"},
		{"", "v1", "events", "", "[/v1, Resource=events events.k8s.io/v1, Resource=events]", "/v1, Kind=Event"},
		{"apps", "v1", "deployments", "scale", "[apps/v1, Resource=deployments]", "autoscaling/v1, Kind=Scale"},
		{
			crdGroup, "v3", "widgets", "status",
			"[reach.example.com/v1, Resource=widgets reach.example.com/v2, Resource=widgets reach.example.com/v3, Resource=widgets]", "reach.example.com/v3, Kind=Widget",
		},
	} {
		t.Run(test.resource, func(t *testing.T) {
			resource := schema.GroupVersionResource{Group: test.group, Version: test.version, Resource: test.resource}
			if got := fmt.Sprint(mapper.EquivalentResourcesFor(resource, test.subresource)); got != test.equivalent {
				t.Errorf("%s %s: got %s, want %s", resource, test.subresource, got, test.equivalent)
			}
			if got := fmt.Sprint(mapper.KindFor(resource, test.subresource)); got != test.kind {
				t.Errorf("%s %s: got %s, want %s", resource, test.subresource, got, test.kind)
			}
		})
	}
}
