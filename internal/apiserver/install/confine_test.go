package install

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// The scenario that sends the requests: number 7 of run x.
const own = "at-x-00007"

// confinedResource returns the resource of a kind that the tests use.
func confinedResource(kind string) client.Resource {
	return map[string]client.Resource{
		"ConfigMap":                      namespaced("", "configmaps"),
		"Pod":                            namespaced("", "pods"),
		"Namespace":                      clusterScoped("", "namespaces"),
		"ClusterRoleBinding":             clusterScoped("rbac.authorization.k8s.io", "clusterrolebindings"),
		"ClusterRole":                    clusterScoped("rbac.authorization.k8s.io", "clusterroles"),
		"CustomResourceDefinition":       clusterScoped("apiextensions.k8s.io", "customresourcedefinitions"),
		"SelfSubjectAccessReview":        clusterScoped("authorization.k8s.io", "selfsubjectaccessreviews"),
		"ValidatingWebhookConfiguration": clusterScoped("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
	}[kind]
}

func namespaced(group, name string) client.Resource {
	return client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Namespaced: true}
}

func clusterScoped(group, name string) client.Resource {
	found := namespaced(group, name)
	found.Namespaced = false
	return found
}

// request returns a request for an object of that kind, namespace and name.
func request(verb framework.Verb, kind, namespace, name string) framework.Request {
	return framework.Request{
		Verb: verb, Namespace: namespace, Name: name,
		Kind: schema.GroupVersionKind{Group: confinedResource(kind).Group, Version: "v1", Kind: kind},
	}
}

// with returns a create of an object.
func with(kind, name string) framework.Request {
	r := request(framework.VerbCreate, kind, "", name)
	r.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	return r
}

func TestAllowed(t *testing.T) {
	for name, r := range map[string]framework.Request{
		"own namespace":               request(framework.VerbCreate, "ConfigMap", own, "a"),
		"other namespace of it":       request(framework.VerbDelete, "ConfigMap", own+"-far", "a"),
		"collection in own namespace": request(framework.VerbDeleteCollection, "ConfigMap", own, ""),
		"own namespace as an object":  request(framework.VerbDelete, "Namespace", "", own),
		"creation of a namespace":     with("Namespace", own+"-far"),
		"review":                      with("SelfSubjectAccessReview", ""),
	} {
		t.Run(name, func(t *testing.T) {
			if err := (Confinement{ID: own}).Check(confinedResource(r.Kind.Kind), r); err != nil {
				t.Errorf("%v, want it allowed", err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const clusterScoped = "are in no namespace, so other clients can use the object or its name"
	raw := request(framework.VerbCreate, "Namespace", "", own)
	raw.HTTP.RawBody = []byte("metadata: {name: team-b}")
	dry := with("ClusterRole", own)
	dry.DryRun = true
	proxied := request(framework.VerbConnect, "Pod", own, "a")
	proxied.HTTP.ProxyPath = "/../../../../default/configmaps"
	for name, c := range map[string]struct {
		request framework.Request
		says    string
	}{
		"object of kube-system":           {request(framework.VerbCreate, "ConfigMap", "kube-system", "a"), "namespace kube-system does not belong to the scenario"},
		"object of another client":        {request(framework.VerbDelete, "ConfigMap", "team-b", "a"), "namespace team-b"},
		"read in another namespace":       {request(framework.VerbGet, "ConfigMap", "team-b", "a"), "namespace team-b"},
		"every namespace":                 {request(framework.VerbList, "ConfigMap", "", ""), "all namespaces"},
		"namespace of another scenario":   {request(framework.VerbCreate, "ConfigMap", "at-x-00070", "a"), "namespace at-x-00070"},
		"longer ID":                       {request(framework.VerbCreate, "ConfigMap", own+"0", "a"), "namespace " + own + "0"},
		"system:discovery":                {request(framework.VerbDelete, "ClusterRole", "", "system:discovery"), clusterScoped},
		"own name":                        {with("ClusterRole", own), clusterScoped},
		"dry run":                         {dry, clusterScoped},
		"read":                            {request(framework.VerbGet, "ClusterRole", "", "admin"), clusterScoped},
		"rights":                          {with("ClusterRoleBinding", own), clusterScoped},
		"configuration":                   {with("ValidatingWebhookConfiguration", own), clusterScoped},
		"deletion of a namespace":         {request(framework.VerbDelete, "Namespace", "", "default"), clusterScoped},
		"creation of another namespace":   {with("Namespace", "team-b"), clusterScoped},
		"name of a namespace in raw body": {raw, clusterScoped},
		"all namespaces":                  {request(framework.VerbList, "Namespace", "", ""), clusterScoped},
		"collection":                      {request(framework.VerbDeleteCollection, "Namespace", "", ""), clusterScoped},
		"path in a name":                  {request(framework.VerbDelete, "ConfigMap", own, own+"/../../../namespaces/default"), "changes the URL path"},
		"path in a namespace":             {request(framework.VerbDelete, "ConfigMap", own+"/configmaps/../../default", "a"), "changes the URL path"},
		"path of a proxy":                 {proxied, "changes the URL path"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Confinement{ID: own}.Check(confinedResource(c.request.Kind.Kind), c.request)
			if !errors.Is(err, framework.ErrForeign) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an ErrForeign that says %q", err, c.says)
			}
		})
	}
}

func TestInstalled(t *testing.T) {
	converted := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook"}}}
	of := func(apiVersion, kind, name string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	}
	for name, test := range map[string]struct {
		manifest map[string]any
		says     string
	}{
		"namespaced":            {of("v1", "ConfigMap", "a"), ""},
		"configuration":         {of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a"), ""},
		"definition":            {of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a"), ""},
		"own namespace":         {of("v1", "Namespace", own+"-far"), ""},
		"conversion webhook":    {converted, "garbage collection"},
		"namespace of others":   {of("v1", "Namespace", "team-b"), "in no namespace"},
		"cluster-scoped object": {of("rbac.authorization.k8s.io/v1", "ClusterRole", own), "in no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := test.manifest["kind"].(string)
			err := Confinement{ID: own}.CheckInstalled(confinedResource(kind), test.manifest)
			if (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, framework.ErrForeign) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}
