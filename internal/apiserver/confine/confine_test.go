package confine

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// The scenario that sends the requests: number 7 of run x.
const own = "at-x-00007"

// resource returns the resource of a kind that the tests use.
func resource(kind string) client.Resource {
	return map[string]client.Resource{
		"ConfigMap":                        namespaced("", "configmaps"),
		"Pod":                              namespaced("", "pods"),
		"Namespace":                        clusterScoped("", "namespaces"),
		"Node":                             clusterScoped("", "nodes"),
		"PersistentVolume":                 clusterScoped("", "persistentvolumes"),
		"ClusterRoleBinding":               clusterScoped("rbac.authorization.k8s.io", "clusterrolebindings"),
		"ResourceSlice":                    clusterScoped("resource.k8s.io", "resourceslices"),
		"ServiceCIDR":                      clusterScoped("networking.k8s.io", "servicecidrs"),
		"ClusterTrustBundle":               clusterScoped("certificates.k8s.io", "clustertrustbundles"),
		"ClusterRole":                      clusterScoped("rbac.authorization.k8s.io", "clusterroles"),
		"PriorityClass":                    clusterScoped("scheduling.k8s.io", "priorityclasses"),
		"StorageClass":                     clusterScoped("storage.k8s.io", "storageclasses"),
		"FlowSchema":                       clusterScoped("flowcontrol.apiserver.k8s.io", "flowschemas"),
		"APIService":                       clusterScoped("apiregistration.k8s.io", "apiservices"),
		"CustomResourceDefinition":         clusterScoped("apiextensions.k8s.io", "customresourcedefinitions"),
		"SelfSubjectAccessReview":          clusterScoped("authorization.k8s.io", "selfsubjectaccessreviews"),
		"ValidatingWebhookConfiguration":   clusterScoped("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
		"ValidatingAdmissionPolicyBinding": clusterScoped("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
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
		Kind: schema.GroupVersionKind{Group: resource(kind).Group, Version: "v1", Kind: kind},
	}
}

// with returns a create or update of an object with more fields.
func with(verb framework.Verb, kind, name string, fields map[string]any) framework.Request {
	r := request(verb, kind, "", name)
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range fields {
		if key == "metadata" {
			for inner, value := range value.(map[string]any) {
				object["metadata"].(map[string]any)[inner] = value
			}
			continue
		}
		object[key] = value
	}
	r.Object = &unstructured.Unstructured{Object: object}
	return r
}

func subjects(one map[string]any) map[string]any { return map[string]any{"subjects": []any{one}} }

func patch(kind, name string, typ types.PatchType, body string) framework.Request {
	r := request(framework.VerbPatch, kind, "", name)
	r.HTTP.PatchType, r.HTTP.Patch = typ, []byte(body)
	return r
}

func TestAllowed(t *testing.T) {
	collection := request(framework.VerbDeleteCollection, "ClusterRole", "", "")
	collection.HTTP.Query = url.Values{"labelSelector": {"set=" + own}}
	dry := with(framework.VerbCreate, "PriorityClass", own, map[string]any{"globalDefault": true})
	dry.DryRun = true
	dryOther := with(framework.VerbCreate, "ClusterRole", "of-nobody", nil)
	dryOther.DryRun = true
	generated := with(framework.VerbCreate, "ClusterRole", "", map[string]any{"metadata": map[string]any{"name": "", "generateName": own + "-"}})
	for name, r := range map[string]framework.Request{
		"own namespace":                  request(framework.VerbCreate, "ConfigMap", own, "a"),
		"other namespace of it":          request(framework.VerbDelete, "ConfigMap", own+"-far", "a"),
		"allowed namespace":              request(framework.VerbUpdate, "ConfigMap", "team-a", "a"),
		"collection in own namespace":    request(framework.VerbDeleteCollection, "ConfigMap", own, ""),
		"own cluster-scoped object":      request(framework.VerbDelete, "ClusterRole", "", own+"-role"),
		"created by its name":            with(framework.VerbCreate, "ClusterRole", own+"-role", nil),
		"created by generateName":        generated,
		"object of the run":              request(framework.VerbGet, "CustomResourceDefinition", "", "widgets.at-x.example.com"),
		"own namespace as an object":     request(framework.VerbDelete, "Namespace", "", own),
		"selected collection":            collection,
		"list":                           request(framework.VerbList, "Namespace", "", ""),
		"review":                         with(framework.VerbCreate, "SelfSubjectAccessReview", "", nil),
		"global default in a dry run":    dry,
		"any name in a dry run":          dryOther,
		"rights of an own user":          with(framework.VerbCreate, "ClusterRoleBinding", own, subjects(map[string]any{"kind": "User", "name": "system:node:" + own + "-n"})),
		"rights of an own account":       with(framework.VerbCreate, "ClusterRoleBinding", own, subjects(map[string]any{"kind": "ServiceAccount", "namespace": own, "name": "default"})),
		"label of a binding":             patch("ClusterRoleBinding", own, types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`),
		"devices of an example":          with(framework.VerbCreate, "ResourceSlice", own, map[string]any{"spec": map[string]any{"driver": "gpu.example.com"}}),
		"trust in an example":            with(framework.VerbCreate, "ClusterTrustBundle", own, map[string]any{"spec": map[string]any{"signerName": "example.com/s"}}),
		"PriorityClass":                  with(framework.VerbCreate, "PriorityClass", own, map[string]any{"value": int64(1)}),
		"bound volume":                   with(framework.VerbCreate, "PersistentVolume", own, map[string]any{"spec": map[string]any{"claimRef": map[string]any{"name": "a"}}}),
		"connect to a Node of that name": request(framework.VerbConnect, "Node", "", own+"-missing"),
		"label of a configuration":       patch("ValidatingWebhookConfiguration", own+"-a", types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`),
		"binding of an own policy":       with(framework.VerbCreate, "ValidatingAdmissionPolicyBinding", own, map[string]any{"spec": map[string]any{"policyName": own + "-p"}}),
	} {
		t.Run(name, func(t *testing.T) {
			policy := Policy{Run: "x", ID: own, Namespaces: []string{"team-a"}}
			if err := policy.Check(resource(r.Kind.Kind), r); err != nil {
				t.Errorf("%v, want it allowed", err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	raw := request(framework.VerbCreate, "ValidatingWebhookConfiguration", "", "")
	raw.HTTP.RawBody = []byte(`{"metadata":{"name":"` + own + `-a"},"webhooks":[]}`)
	rawPatch := request(framework.VerbPatch, "ValidatingWebhookConfiguration", "", own+"-a")
	rawPatch.HTTP.RawBody, rawPatch.HTTP.PatchType, rawPatch.HTTP.ContentType = []byte(`[]`), types.MergePatchType, string(types.JSONPatchType)
	rawPriority := request(framework.VerbPatch, "PriorityClass", "", own)
	rawPriority.HTTP.RawBody, rawPriority.HTTP.PatchType = []byte(`[{"op":"add","path":"/globalDefault","value":true}]`), types.MergePatchType
	rawPriority.HTTP.ContentType = string(types.JSONPatchType) + "; charset=utf-8"
	rawName := request(framework.VerbCreate, "ClusterRole", "", own)
	rawName.HTTP.RawBody = []byte("metadata: {name: admin2}")
	dryUpdate := with(framework.VerbUpdate, "ClusterRole", "admin", nil) // the response has fields of the existing object
	dryUpdate.DryRun = true
	proxied := request(framework.VerbConnect, "Pod", own, "a")
	proxied.HTTP.ProxyPath = "/../../../../default/configmaps"
	annotations := func(key string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "true"}}}
	}
	for name, c := range map[string]struct {
		request framework.Request
		says    string
	}{
		"object of kube-system":             {request(framework.VerbCreate, "ConfigMap", "kube-system", "a"), "--allow-foreign kube-system"},
		"object of another client":          {request(framework.VerbDelete, "ConfigMap", "team-b", "a"), "namespace team-b"},
		"read in another namespace":         {request(framework.VerbGet, "ConfigMap", "team-b", "a"), "namespace team-b"},
		"every namespace":                   {request(framework.VerbList, "ConfigMap", "", ""), "all namespaces"},
		"namespace of another scenario":     {request(framework.VerbCreate, "ConfigMap", "at-x-00070", "a"), "namespace at-x-00070"},
		"longer ID":                         {request(framework.VerbCreate, "ConfigMap", own+"0", "a"), "namespace " + own + "0"},
		"system:discovery":                  {request(framework.VerbDelete, "ClusterRole", "", "system:discovery"), `"system:discovery"`},
		"foreign name in the body":          {with(framework.VerbCreate, "ClusterRole", "other", nil), `"other"`},
		"update in a dry run":               {dryUpdate, `"admin"`},
		"foreign name in a raw body":        {rawName, `"admin2"`},
		"no name in the body":               {with(framework.VerbCreate, "ClusterRole", "", nil), `object ""`},
		"deletion of a namespace":           {request(framework.VerbDelete, "Namespace", "", "default"), `"default"`},
		"creation of an allowed one":        {with(framework.VerbCreate, "Namespace", "team-a", nil), "team-a"},
		"collection":                        {request(framework.VerbDeleteCollection, "ClusterRole", "", ""), "labelSelector"},
		"path in a name":                    {request(framework.VerbDelete, "ConfigMap", own, own+"/../../../namespaces/default"), "changes the URL path"},
		"path in a namespace":               {request(framework.VerbDelete, "ConfigMap", own+"/configmaps/../../default", "a"), "changes the URL path"},
		"path of a proxy":                   {proxied, "changes the URL path"},
		"webhooks in a raw body":            {raw, "raw body"},
		"patch of webhooks":                 {patch("ValidatingWebhookConfiguration", own+"-a", types.MergePatchType, `{"webhooks":[]}`), "use update"},
		"JSON patch of webhooks":            {patch("ValidatingWebhookConfiguration", own+"-a", types.JSONPatchType, `[{"op":"remove","path":"/webhooks/0/namespaceSelector"}]`), "use update"},
		"JSON patch of everything":          {patch("ValidatingWebhookConfiguration", own+"-a", types.JSONPatchType, `[{"op":"replace","path":"","value":{"webhooks":[]}}]`), "use update"},
		"removal of our label":              {patch("ValidatingWebhookConfiguration", own+"-a", types.MergePatchType, `{"metadata":{"labels":{"admissiontest.dev/run":null}}}`), "admissiontest.dev/run"},
		"binding of a foreign policy":       {with(framework.VerbCreate, "ValidatingAdmissionPolicyBinding", own, map[string]any{"spec": map[string]any{"policyName": "team-b"}}), `policy "team-b"`},
		"Node":                              {with(framework.VerbCreate, "Node", own, nil), "DaemonSets"},
		"volume for every claim":            {with(framework.VerbCreate, "PersistentVolume", own, nil), "claimRef"},
		"default priority":                  {with(framework.VerbCreate, "PriorityClass", own, map[string]any{"globalDefault": true}), "globalDefault"},
		"raw patch of webhooks":             {rawPatch, "raw body"},
		"default priority by raw patch":     {rawPriority, "globalDefault"},
		"default priority by patch":         {patch("PriorityClass", own, types.JSONPatchType, `[{"op":"add","path":"/globalDefault","value":true}]`), "globalDefault"},
		"rights of a user":                  {with(framework.VerbCreate, "ClusterRoleBinding", own, subjects(map[string]any{"kind": "User", "name": "jane"})), `User "jane"`},
		"rights of a group":                 {with(framework.VerbUpdate, "ClusterRoleBinding", own, subjects(map[string]any{"kind": "Group", "name": "system:authenticated"})), `Group "system:authenticated"`},
		"rights of another account":         {with(framework.VerbCreate, "ClusterRoleBinding", own, subjects(map[string]any{"kind": "ServiceAccount", "namespace": "kube-system", "name": "default"})), `"default"`},
		"rights by a user with a namespace": {with(framework.VerbCreate, "ClusterRoleBinding", own, subjects(map[string]any{"kind": "User", "namespace": own, "name": "jane"})), `"jane"`},
		"rights by a patch":                 {patch("ClusterRoleBinding", own, types.JSONPatchType, `[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"jane"}}]`), "set the whole list"},
		"rights by a merge patch":           {patch("ClusterRoleBinding", own, types.MergePatchType, `{"subjects":[{"kind":"User","name":"jane"}]}`), `"jane"`},
		"default storage by a copy":         {patch("StorageClass", own, types.JSONPatchType, `[{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/storageclass.kubernetes.io~1is-default-class"}]`), `use "add"`},
		"devices":                           {with(framework.VerbCreate, "ResourceSlice", own, map[string]any{"spec": map[string]any{"driver": "gpu.nvidia.com"}}), "gpu.nvidia.com"},
		"addresses":                         {with(framework.VerbCreate, "ServiceCIDR", own, nil), "ServiceCIDR"},
		"trust":                             {with(framework.VerbCreate, "ClusterTrustBundle", own, map[string]any{"spec": map[string]any{"signerName": "kubernetes.io/kube-apiserver-serving"}}), "trust"},
		"default storage":                   {with(framework.VerbUpdate, "StorageClass", own, annotations("storageclass.kubernetes.io/is-default-class")), "is-default-class"},
		"aggregated role": {with(framework.VerbCreate, "ClusterRole", own, map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"rbac.authorization.k8s.io/aggregate-to-view": "true"},
		}}), "aggregate-to-view"},
		"priority and fairness": {with(framework.VerbCreate, "FlowSchema", own, nil), "API Priority and Fairness"},
		"API":                   {with(framework.VerbCreate, "APIService", own, nil), "API of every client"},
		"conversion webhook": {with(framework.VerbCreate, "CustomResourceDefinition", "widgets.at-x.example.com", map[string]any{
			"spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook"}},
		}), "conversion webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := Policy{Run: "x", ID: own, Namespaces: []string{"team-a"}}
			err := policy.Check(resource(c.request.Kind.Kind), c.request)
			if !errors.Is(err, framework.ErrForeign) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an ErrForeign that says %q", err, c.says)
			}
		})
	}
}
