package fakes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestRESTMapper(t *testing.T) {
	mapper := fakes.NewWorld(t, fakes.WithScheme(fischerScheme())).RESTMapper()
	for _, c := range []struct {
		kind     schema.GroupKind
		resource schema.GroupVersionResource
		scope    meta.RESTScope
	}{
		{schema.GroupKind{Kind: "Namespace"}, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, meta.RESTScopeRoot},
		{schema.GroupKind{Kind: "Endpoints"}, schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}, meta.RESTScopeNamespace},
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, meta.RESTScopeNamespace},
		{schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"}, schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}, meta.RESTScopeRoot},
		{fischers().WithKind("Fischer").GroupKind(), fischers().WithResource("fischers"), meta.RESTScopeNamespace},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			mapping, err := mapper.RESTMapping(c.kind)
			if err != nil || mapping.Resource != c.resource || mapping.Scope != c.scope {
				t.Errorf("%s: got %v, %v, want %s in scope %s", c.kind, mapping, err, c.resource, c.scope.Name())
			}
			if kind, err := mapper.KindFor(c.resource); err != nil || kind.GroupKind() != c.kind {
				t.Errorf("%s: got kind %v, %v, want %s", c.resource, kind, err, c.kind)
			}
		})
	}
	// More than one group has events: that of core comes first, as kubectl has it.
	if got, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "events"}); err != nil || got.Group != "" {
		t.Errorf("got %v, %v, want events of the core group", got, err)
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}); !meta.IsNoMatchError(err) {
		t.Errorf("got %v for an unknown kind", err)
	}
}

// The mapper has the names and scopes that a kube-apiserver serves.
func TestRESTMapperIsAsServed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a kube-apiserver")
	}
	found, err := binaries.Find(t.Context(), binaries.Options{})
	if errors.Is(err, binaries.ErrNotFound) {
		t.Skip("needs the binaries of a control plane: make them with admissiontest assets build: ", err)
	}
	must(t, found, err)
	server, err := envtest.Start(t.Context(), envtest.Options{BinaryAssetsDirectory: found.Dir, Profile: envtest.Profile{Flags: map[string]string{"runtime-config": "api/all=true"}, FeatureGates: map[string]bool{"AllAlpha": true, "AllBeta": true}}})
	must(t, server, err)
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := discovery.NewDiscoveryClientForConfig(server.Config)
	must(t, client, err)
	_, lists, err := client.ServerGroupsAndResources()
	must(t, lists, err)
	mapper, n := fakes.NewWorld(t).RESTMapper(), 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, gv, err)
		for _, served := range list.APIResources {
			if scheme.Scheme.Recognizes(gv.WithKind(served.Kind)) && !strings.Contains(served.Name, "/") {
				n++
				compareMapping(t, mapper, gv, served)
			}
		}
	}
	if n < 80 {
		t.Errorf("compared %d resources, want all of Kubernetes", n)
	}
	t.Logf("compared %d resources", n)
}

func compareMapping(t *testing.T, mapper meta.RESTMapper, gv schema.GroupVersion, served metav1.APIResource) {
	t.Helper()
	mapping, err := mapper.RESTMapping(gv.WithKind(served.Kind).GroupKind(), gv.Version)
	if err != nil {
		t.Errorf("%s %s: %v", gv, served.Kind, err)
		return
	}
	namespaced := mapping.Scope == meta.RESTScopeNamespace
	if mapping.Resource != gv.WithResource(served.Name) || namespaced != served.Namespaced {
		t.Errorf("%s %s: got %s, namespaced %v; the server has %s, namespaced %v",
			gv, served.Kind, mapping.Resource.Resource, namespaced, served.Name, served.Namespaced)
	}
}
