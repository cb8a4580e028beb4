package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// recorder records the requests that are sent.
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.requests = append(r.requests, request.Method+" "+request.URL.String())
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestReadOnly(t *testing.T) {
	config := rest.CopyConfig(testserver.Own(t))
	var sent recorder
	config.Wrap(sent.wrap)
	if _, err := ReadCluster(t.Context(), config, nil); err != nil {
		t.Fatal(err)
	}
	if len(sent.requests) < 10 {
		t.Errorf("Read sent %d requests; want lists", len(sent.requests))
	}
	for _, request := range sent.requests {
		if !strings.HasPrefix(request, "GET ") || strings.Contains(request, "watch=") {
			t.Errorf("Read sent %s", request)
		}
	}
	client, err := dynamic.NewForConfig(ReadOnly(config))
	if err != nil {
		t.Fatal(err)
	}
	before := len(sent.requests)
	configMaps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	for verb, do := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := configMaps.Create(ctx, object, metav1.CreateOptions{DryRun: []string{"All"}})
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := configMaps.Update(ctx, object, metav1.UpdateOptions{})
			return err
		},
		"patch": func(ctx context.Context) error {
			_, err := configMaps.Patch(ctx, "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"delete": func(ctx context.Context) error { return configMaps.Delete(ctx, "a", metav1.DeleteOptions{}) },
		"deletecollection": func(ctx context.Context) error {
			return configMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"watch": func(ctx context.Context) error { _, err := configMaps.Watch(ctx, metav1.ListOptions{}); return err },
	} {
		if err := do(t.Context()); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: got %v, want ErrReadOnly", verb, err)
		}
	}
	if got := sent.requests[before:]; len(got) > 0 {
		t.Errorf("these requests were sent: %q", got)
	}
}

// create creates objects of a file, except those that a kube-apiserver alone cannot serve.
func create(t *testing.T, config *rest.Config, objects []map[string]any) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range objects {
		object := &unstructured.Unstructured{Object: fields}
		kind := object.GroupVersionKind()
		resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
		unstructured.RemoveNestedField(object.Object, "status")
		if _, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s %s: %v", kind.Kind, object.GetName(), err)
		}
	}
}

// A cluster gives the findings of the files. A missing right is an error, and no absence.
func TestCluster(t *testing.T) {
	config := testserver.Own(t)
	project, err := shipped.Read("testdata/cf-block-1/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	create(t, config, project.Objects())
	found := func(report *Report) (rules []string) {
		for _, f := range report.Findings {
			rules = append(rules, string(f.Severity)+" "+f.Rule)
		}
		slices.Sort(rules)
		return rules
	}
	all := judgeCluster(t, config, Input{})
	// No controller runs: there are no endpoints, and the caBundle was not injected, which is not certain at once.
	if got, want := found(all), []string{"error CF-BLOCK-1", "error CF-REACH-1"}; !slices.Equal(got, want) {
		t.Errorf("with all rights: got %q, want %q\n%s", got, want, all.Text(true))
	}
	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "reader"}
	if _, err := ReadCluster(t.Context(), limited, nil); !apierrors.IsForbidden(err) {
		t.Errorf("without rights: got %v, want an error of the API server", err)
	}
	files, err := shipped.Read("testdata/cf-block-5/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	both := judgeCluster(t, config, Input{Manifests: files.Manifests})
	if got, want := found(both), []string{"warning CF-BLOCK-5"}; !slices.Equal(got, want) {
		t.Errorf("files on the cluster: got %q, want %q\n%s", got, want, both.Text(true))
	}
}

func judgeCluster(t *testing.T, config *rest.Config, input Input) *Report {
	t.Helper()
	var err error
	if input.Cluster, err = ReadCluster(t.Context(), config, input.Manifests); err != nil {
		t.Fatal(err)
	}
	report, err := Judge(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
