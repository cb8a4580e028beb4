package apiserver

import (
	"cmp"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// composed is compose for a Request that is not resolved.
func composed(request framework.Request) (client.HTTPRequest, error) {
	resolved, err := known().Resolve(request)
	if err != nil {
		return client.HTTPRequest{}, err
	}
	return compose(known(), resolved)
}

// known returns resources without an API server.
func known() *client.Resources {
	resources := client.NewResources()
	resources.Add(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "nodes", Kind: "Node"},
		{Name: "configmaps/binding"}, {Name: "configmaps/proxy"}, {Name: "configmaps/status"},
	}})
	return resources
}

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
}

func request(verb framework.Verb, edit ...func(*framework.Request)) framework.Request {
	r := framework.Request{Verb: verb, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "n", Name: "a"}
	switch verb {
	case framework.VerbCreate, framework.VerbUpdate, framework.VerbApply:
		r.Object = configMap("a")
	}
	for _, one := range edit {
		one(&r)
	}
	return r
}

func TestCompose(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	const path = "/api/v1/namespaces/n/configmaps"
	for name, test := range map[string]struct {
		request framework.Request
		want    client.HTTPRequest
	}{
		"create": {request(framework.VerbCreate), client.HTTPRequest{Method: "POST", Path: path, Body: []byte(object)}},
		"update": {request(framework.VerbUpdate), client.HTTPRequest{Method: "PUT", Path: path + "/a", Body: []byte(object)}},
		"apply": {request(framework.VerbApply), client.HTTPRequest{
			Method: "PATCH", Path: path + "/a", Body: []byte(object), ContentType: "application/apply-patch+yaml", Query: url.Values{"fieldManager": {"admissiontest"}},
		}},
		"get":  {request(framework.VerbGet), client.HTTPRequest{Method: "GET", Path: path + "/a"}},
		"list": {request(framework.VerbList, func(r *framework.Request) { r.Name = "" }), client.HTTPRequest{Method: "GET", Path: path}},
		"patch": {request(framework.VerbPatch, func(r *framework.Request) { r.HTTP.Patch, r.HTTP.PatchType = []byte("[]"), types.JSONPatchType }), client.HTTPRequest{
			Method: "PATCH", Path: path + "/a", Body: []byte("[]"), ContentType: "application/json-patch+json",
		}},
		"delete": {request(framework.VerbDelete, func(r *framework.Request) {
			r.DryRun = true
			r.HTTP.DeleteOptions = map[string]any{"kind": "DeleteOptions"}
		}), client.HTTPRequest{
			Method: "DELETE", Path: path + "/a", Body: []byte(`{"kind":"DeleteOptions"}`), Query: url.Values{"dryRun": {"All"}},
		}},
		"raw body": {request(framework.VerbUpdate, func(r *framework.Request) { r.HTTP.RawBody, r.HTTP.ContentType = []byte("a: b"), "application/yaml" }), client.HTTPRequest{
			Method: "PUT", Path: path + "/a", Body: []byte("a: b"), ContentType: "application/yaml",
		}},
		"raw patch": {request(framework.VerbPatch, func(r *framework.Request) {
			r.HTTP.Patch, r.HTTP.PatchType, r.HTTP.RawBody = []byte("{}"), types.MergePatchType, []byte("raw")
		}), client.HTTPRequest{Method: "PATCH", Path: path + "/a", Body: []byte("raw"), ContentType: "application/merge-patch+json"}},
		"subresource": {request(framework.VerbCreate, func(r *framework.Request) { r.Subresource = "binding" }), client.HTTPRequest{
			Method: "POST", Path: path + "/a/binding", Body: []byte(object),
		}},
		"connect": {request(framework.VerbConnect, func(r *framework.Request) {
			r.Subresource, r.HTTP.Method, r.HTTP.ProxyPath, r.HTTP.Query = "proxy", "GET", "/x/", url.Values{"q": {"1", "2"}}
		}), client.HTTPRequest{Method: "GET", Path: path + "/a/proxy/x/", Query: url.Values{"q": {"1", "2"}}}},
		"cluster-scoped": {request(framework.VerbGet, func(r *framework.Request) { r.Kind.Kind = "Node" }), client.HTTPRequest{
			Method: "GET", Path: "/api/v1/nodes/a",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := composed(test.request)
			if err != nil {
				t.Error(err)
			}
			test.want.ContentType = cmp.Or(test.want.ContentType, "application/json")
			if test.want.Query == nil {
				test.want.Query = url.Values{}
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestComposeErrors(t *testing.T) {
	for want, r := range map[string]framework.Request{
		`unknown verb "watch"`:               request("watch"),
		"does not serve":                     request(framework.VerbGet, func(r *framework.Request) { r.Kind.Kind = "Widget" }),
		"a *v1.ConfigMap has no apiVersion":  request(framework.VerbCreate, func(r *framework.Request) { r.Object = &corev1.ConfigMap{} }),
		"Request.Object: field is not supp":  request(framework.VerbGet, func(r *framework.Request) { r.Object = configMap("a") }),
		"Request.HTTP.Patch: field is not s": request(framework.VerbUpdate, func(r *framework.Request) { r.HTTP.Patch = []byte("{}") }),
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := composed(r); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestNoFieldIsIgnored sets each field of a Request with each verb: it changes the HTTP
// request, or the Request is refused with the name of the field.
func TestNoFieldIsIgnored(t *testing.T) {
	verbs := []framework.Verb{
		framework.VerbGet, framework.VerbList, framework.VerbCreate, framework.VerbUpdate, framework.VerbPatch,
		framework.VerbApply, framework.VerbDelete, framework.VerbDeleteCollection, framework.VerbConnect,
	}
	paths := fieldPaths(reflect.TypeFor[framework.Request](), "")
	if len(paths) < 20 {
		t.Fatalf("walked %d fields, want all of framework.Request", len(paths))
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			for _, verb := range verbs {
				base := request(verb)
				if path == "Verb" {
					continue // TestCompose has each verb
				}
				if path == "Name" && verb == framework.VerbCreate {
					continue // in the body
				}
				changed := base
				setField(t, reflect.ValueOf(&changed).Elem(), path)
				before, err := composed(base)
				if err != nil {
					t.Fatal(err)
				}
				after, err := composed(changed)
				switch {
				case err != nil && (!errors.Is(err, framework.ErrFieldNotSupported) || !strings.Contains(err.Error(), "Request."+path+":")):
					t.Errorf("%s with Request.%s: %v, want an ErrFieldNotSupported that names the field", verb, path, err)
				case err == nil && gocmp.Equal(before, after):
					t.Errorf("%s with Request.%s: the HTTP request does not change; use the field, or refuse it in checkUsed", verb, path)
				}
			}
		})
	}
}

// fieldPaths returns the paths of all fields of a Request: "Verb", "HTTP.Query".
func fieldPaths(of reflect.Type, prefix string) []string {
	var paths []string
	for i := range of.NumField() {
		field := of.Field(i)
		if slices.Contains([]string{"HTTP", "InProcess"}, field.Name) {
			paths = append(paths, fieldPaths(field.Type, field.Name+".")...)
		} else {
			paths = append(paths, prefix+field.Name)
		}
	}
	return paths
}

// setField sets a field to a value that is not zero and differs from that of request.
func setField(t *testing.T, r reflect.Value, path string) {
	t.Helper()
	value := r
	for name := range strings.SplitSeq(path, ".") {
		value = value.FieldByName(name)
	}
	values := map[string]any{
		"Verb": framework.VerbGet, "Kind": schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "Namespace": "other", "Name": "other", "Subresource": "status",
		"Object": configMap("other"), "DryRun": true, "User": &framework.User{Name: "jane"},
		"HTTP.RawBody": []byte("raw"), "HTTP.ContentType": "text/other", "HTTP.Patch": []byte("{}"), "HTTP.PatchType": types.MergePatchType,
		"HTTP.DeleteOptions": map[string]any{"a": "b"}, "HTTP.Query": url.Values{"a": {"b"}}, "HTTP.Method": "PUT", "HTTP.ProxyPath": "/x",
		"InProcess.OldObject": configMap("other"), "InProcess.Parent": configMap("other"), "InProcess.CreateOnUpdate": true, "InProcess.Options": &metav1.CreateOptions{},
		"InProcess.Resource": schema.GroupVersionResource{Resource: "others"}, "InProcess.Version": schema.GroupVersion{Version: "v2"},
		"InProcess.Unstructured": true, "InProcess.ImpossibleBecause": "test",
	}
	set, ok := values[path]
	if !ok {
		t.Fatalf("Request.%s is new: add a value for it here, and make compose use or refuse it", path)
	}
	value.Set(reflect.ValueOf(set))
}
