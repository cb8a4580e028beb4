package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func connect(t *testing.T, config *rest.Config) *Client {
	t.Helper()
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func configMaps() Resource {
	return Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true, Deletable: true}
}

func manifest(name string, metadata map[string]any) map[string]any {
	all := map[string]any{"name": name}
	for key, value := range metadata {
		all[key] = value
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": all}
}

func TestObjectsWithoutServer(t *testing.T) {
	c, err := newWith(&rest.Config{Host: "https://127.0.0.1:1"}, atOnce)
	if err != nil {
		t.Fatal(err)
	}
	_, created := c.Create(t.Context(), Namespace("a"), map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a"}})
	_, listed := c.List(t.Context(), configMaps(), "", metav1.ListOptions{})
	_, version := c.Version(t.Context())
	_, reviewed := c.Missing(t.Context(), []Right{{Verb: "get", Resource: "pods"}})
	for name, err := range map[string]error{"create": created, "list": listed, "version": version, "discover": c.Discover(t.Context()), "alive": c.Alive(t.Context()), "may": reviewed} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, framework.ErrNoResponse) {
				t.Errorf("%s = %v, want ErrNoResponse", name, err)
			}
		})
	}
	if c.User(t.Context()).Name != "" || c.FeatureGates(t.Context()) != nil {
		t.Error("user or feature gates of a server that does not respond")
	}
}

// Controllers run if they hold their Lease, which the user must be able to list.
func TestHasControllers(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		body string
		want bool
	}{
		"held":      {200, `{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": [{"metadata": {"name": "other"}, "spec": {"holderIdentity": ""}}, {"metadata": {"name": "kube-controller-manager"}, "spec": {"holderIdentity": "a"}}]}`, true},
		"not held":  {200, `{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": [{"metadata": {"name": "kube-controller-manager"}, "spec": {"holderIdentity": ""}}, {"metadata": {"name": "other"}, "spec": {"holderIdentity": "a"}}]}`, false},
		"no Lease":  {200, `{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": []}`, false},
		"no rights": {403, `{"kind": "Status", "apiVersion": "v1", "code": 403}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path + "?" + r.URL.Query().Get("fieldSelector")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			})
			if got := c.HasControllers(t.Context()); got != test.want {
				t.Errorf("got %t; want %t", got, test.want)
			}
			if want := "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?metadata.name=kube-controller-manager"; asked != want {
				t.Errorf("asked for %s; want %s", asked, want)
			}
		})
	}
}

func TestDescribeOddServers(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		body string
		want string
	}{
		"unauthorized":   {401, `{"kind":"Status","apiVersion":"v1","message":"Unauthorized"}`, "401 Unauthorized: check the credentials"},
		"not Kubernetes": {200, `{"hello":"world"}`, "no gitVersion: is this a Kubernetes API server?"},
		"not JSON":       {200, `<html>`, "no gitVersion: is this a Kubernetes API server?"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			})
			if _, err := c.Version(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "%!") {
				t.Errorf("version = %v, want %q", err, test.want)
			}
		})
	}
	for code, alive := range map[int]bool{200: true, 403: true, 404: true, 429: true, 500: false, 503: false, 504: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
			if err := c.Alive(t.Context()); (err == nil) != alive || !alive && !errors.Is(err, framework.ErrNoResponse) {
				t.Errorf("%d: alive = %v, want an ErrNoResponse: %t", code, err, !alive)
			}
		})
	}
}

func TestParseSamples(t *testing.T) {
	const text = `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="On",stage="BETA"} 1
kubernetes_feature_enabled{name="Off",stage=""} 0
# TYPE other gauge
other{name="Other"} 1
# TYPE apiserver_admission_controller_admission_duration_seconds histogram
apiserver_admission_controller_admission_duration_seconds_bucket{name="Priority",operation="CREATE",rejected="false",type="admit",le="0.005"} 1
apiserver_admission_controller_admission_duration_seconds_bucket{name="Priority",operation="CREATE",rejected="false",type="admit",le="2.5"} 2
apiserver_admission_controller_admission_duration_seconds_bucket{name="Priority",operation="CREATE",rejected="false",type="admit",le="+Inf"} 3
apiserver_admission_controller_admission_duration_seconds_sum{name="Priority",operation="CREATE",rejected="false",type="admit"} 1e-06
apiserver_admission_controller_admission_duration_seconds_count{name="Priority",operation="CREATE",rejected="false",type="admit"} 3
# TYPE requests counter
requests 7
`
	for metric, want := range map[string][]framework.Sample{
		featureMetric: {{Labels: map[string]string{"name": "On", "stage": "BETA"}, Value: 1}, {Labels: map[string]string{"name": "Off", "stage": ""}}},
		pluginMetric:  {{Labels: map[string]string{"name": "Priority", "operation": "CREATE", "rejected": "false", "type": "admit"}, Value: 3, Buckets: []float64{0.005, 2.5}}},
		"requests":    {{Labels: map[string]string{}, Value: 7}},
		"missing":     nil,
	} {
		t.Run(metric, func(t *testing.T) {
			got, err := parseSamples([]byte(text), metric)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
	if got, err := parseSamples([]byte("kubernetes_feature_enabled{name="), featureMetric); err == nil {
		t.Errorf("half a line: got %v, want an error", got)
	}
}

func TestResources(t *testing.T) {
	c := connect(t, testserver.Config(t))
	r := c.Resources
	pods, err := r.Of(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if err != nil || pods.Resource != "pods" || !pods.Namespaced || !pods.Deletable {
		t.Errorf("Pod: %+v, %v", pods, err)
	}
	if review, err := r.Of(schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}); err != nil || review.Namespaced || review.Deletable {
		t.Errorf("TokenReview: %+v, %v", review, err)
	}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	if _, err := r.Of(widget); err == nil || !strings.Contains(err.Error(), "does not serve") {
		t.Errorf("Widget before its definition: %v", err)
	}
	added := r.AddCRD(map[string]any{"spec": map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
		"versions": []any{map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v2", "served": false}},
	}})
	if found, err := r.Of(widget); err != nil || len(added) != 1 || found != added[0] || !found.Namespaced {
		t.Errorf("Widget: %+v, added %+v, %v", found, added, err)
	}
	pod := pods
	for subresource, want := range map[string]string{"": "", "exec": "", "status": "", "nothing": "does not serve", "statu": `did you mean "status"?`} {
		t.Run(subresource, func(t *testing.T) {
			err := r.ServesSubresource(pod, subresource)
			if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || errors.Is(err, framework.ErrNotServed) != (want == "does not serve") {
				t.Errorf("subresource %q of pods: %v; want %q", subresource, err, want)
			}
		})
	}
	if err := r.ServesSubresource(added[0], "nothing"); err != nil {
		t.Errorf("subresource of a custom resource: %v; want the API server to answer", err)
	}
	widget.Version = "v3"
	if _, err := r.Of(widget); !errors.Is(err, framework.ErrNotServed) || !strings.Contains(err.Error(), "(it serves example.com/v1 Widget)") {
		t.Errorf("version that is not served: %v; want the one that is", err)
	}
	for kind, want := range map[schema.GroupVersionKind]string{
		{Version: "v1", Kind: "Confgmap"}:                           `did you mean "ConfigMap"?`,
		{Version: "v1", Kind: "configmap"}:                          `did you mean "ConfigMap"?`,
		{Group: "policy", Version: "v1", Kind: "PodSecurityPolicy"}: "", // unknown
		{Version: "v2", Kind: "Pod"}:                                "", // served in another version
		{Group: "example.org", Version: "v1", Kind: "ConfigMap"}:    "",
		{Group: "example.com", Version: "v1", Kind: "Widgets"}:      `did you mean "Widget"?`,
		{Group: "example.com", Version: "v1", Kind: "AnythingElse"}: "",
	} {
		t.Run(kind.String(), func(t *testing.T) {
			_, err := r.Of(kind)
			if errors.Is(err, framework.ErrNotServed) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %v; want %q", kind, err, want)
			}
		})
	}
	for _, res := range r.Deletable(false) {
		if res.Namespaced || res.Resource == "pods" {
			t.Errorf("cluster-scoped and deletable: %+v", res)
		}
	}
}

func TestPoll(t *testing.T) {
	if err := Poll(t.Context(), Soon, 20*Soon, func() (bool, error) { return false, nil }); !errors.Is(err, framework.ErrTimeout) {
		t.Errorf("Poll = %v, want ErrTimeout", err)
	}
	calls := 0
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("by a policy"))
	if err := WhileRefused(t.Context(), func() error {
		if calls++; calls < 3 {
			return refused
		}
		return nil
	}); err != nil || calls != 3 {
		t.Errorf("WhileRefused = %v after %d calls, want success after 3", err, calls)
	}
	calls = 0
	if err := WhileRefused(t.Context(), func() error { calls++; return framework.ErrNoResponse }); !errors.Is(err, framework.ErrNoResponse) || calls != 1 {
		t.Errorf("WhileRefused = %v after %d calls, want ErrNoResponse at once", err, calls)
	}
}

// All has the subresources too, and what only other API servers serve, or discovery could not read, without a
// version.
func TestAllResources(t *testing.T) {
	t.Parallel()
	r := NewResources(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "namespaces", Kind: "Namespace"}, {Name: "namespaces/status", Kind: "Namespace"},
	}}, &metav1.APIResourceList{GroupVersion: "metrics.k8s.io/v1"})
	r.AddCRD(map[string]any{"spec": map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
		"versions": []any{map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v2", "served": true, "subresources": map[string]any{"status": map[string]any{}}}},
	}})
	if got, want := described(r, "", "example.com", "metrics.k8s.io"), []string{
		"/* pods true ", "/* pods/* true ", "/v1 namespaces false Namespace", "/v1 namespaces/status false Namespace",
		"example.com/v1 widgets true Widget", "example.com/v1 widgets/* true Widget",
		"example.com/v2 widgets true Widget", "example.com/v2 widgets/* true Widget", "example.com/v2 widgets/status true Widget", "metrics.k8s.io/* */* false ",
	}; !cmp.Equal(want, got) {
		t.Errorf("All (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// described returns the resources of some groups, of the built-in ones that are not served only the pods.
func described(r *Resources, groups ...string) []string {
	var all []string
	for _, one := range r.All() {
		if slices.Contains(groups, one.Group) && (one.Version != "*" || one.Group != "" || strings.HasPrefix(one.Name, "pods")) {
			all = append(all, fmt.Sprintf("%s/%s %s %t %s", one.Group, one.Version, one.Name, one.Namespaced, one.Kind))
		}
	}
	slices.Sort(all)
	return all
}

// A broken aggregated API makes only its own group unknown.
func TestDiscoverABrokenGroup(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		answer, ok := map[string]string{
			"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
			"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": []}]}`,
			"/apis":   `{"kind": "APIGroupList", "groups": [{"name": "broken.example.com", "versions": [{"groupVersion": "broken.example.com/v1", "version": "v1"}]}]}`,
		}[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	})
	if err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/v1 pods true Pod", "broken.example.com/* */* false "}, described(c.Resources, "", "broken.example.com")); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// The version is read again while the API server is overloaded, as often as its backoff says.
func TestVersionOfOverloadedServer(t *testing.T) {
	for name, test := range map[string]struct {
		fail     func(http.ResponseWriter)
		failures int
		want     string
	}{
		"429":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, 2, "v1.36.3"},
		"502":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, 2, "v1.36.3"},
		"no response": {hijack, 2, "v1.36.3"},
		"always 429":  {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, 100, ": 429"},
		"401":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, 1, ": 401"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests <= test.failures {
					test.fail(w)
					return
				}
				_, _ = fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
			})
			got, err := c.Version(t.Context())
			if answer := fmt.Sprint(got, err); !strings.Contains(answer, test.want) || requests != min(test.failures+1, 3) && test.want != ": 401" {
				t.Errorf("got %s after %d requests; want %s", answer, requests, test.want)
			}
		})
	}
}

// An API server without metrics does not serve them: nothing failed.
func TestMetricsThatAreNotServed(t *testing.T) {
	for code, want := range map[int]bool{http.StatusNotFound: true, http.StatusForbidden: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
			_, err := c.Samples(t.Context(), pluginMetric)
			if got := errors.Is(err, framework.ErrNotServed); err == nil || got != want {
				t.Errorf("%d: got %v; ErrNotServed %t, want %t", code, err, got, want)
			}
		})
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := serve(t, func(http.ResponseWriter, *http.Request) {}).Samples(late, pluginMetric); !errors.Is(err, framework.ErrNoResponse) {
		t.Errorf("too late: got %v, want an ErrNoResponse", err)
	}
}
