package rules_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// refusingAll refuses each request.
type refusingAll struct{ *admission.Handler }

func (refusingAll) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return admission.NewForbidden(a, errors.New("everything is refused"))
}

// TestServedSubresources: P3 sends only requests for subresources that API servers serve.
func TestServedSubresources(t *testing.T) {
	named := metav1.ObjectMeta{Name: "a", Namespace: "default"}
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
	for name, test := range map[string]struct {
		object  runtime.Object
		handles []admission.Operation
		want    []string // the subresources that it must ignore
	}{
		"endpoints":        {&corev1.Endpoints{ObjectMeta: named}, []admission.Operation{admission.Create, admission.Update}, nil}, //nolint:staticcheck // deprecated, and still served
		"config maps":      {&corev1.ConfigMap{ObjectMeta: named}, []admission.Operation{admission.Create, admission.Update}, nil},
		"services":         {&corev1.Service{ObjectMeta: named}, []admission.Operation{admission.Create, admission.Update}, []string{"status"}},
		"deployments":      {&appsv1.Deployment{ObjectMeta: named}, []admission.Operation{admission.Create, admission.Update}, []string{"status", "scale"}},
		"new deployments":  {&appsv1.Deployment{ObjectMeta: named}, []admission.Operation{admission.Create}, nil},
		"new pods":         {&corev1.Pod{ObjectMeta: named}, []admission.Operation{admission.Create}, []string{"binding", "eviction"}},
		"pods":             {&corev1.Pod{ObjectMeta: named}, []admission.Operation{admission.Create, admission.Connect}, []string{"binding", "eviction", "exec"}},
		"service accounts": {&corev1.ServiceAccount{ObjectMeta: named}, []admission.Operation{admission.Create}, []string{"token"}},
		"widgets":          {widget, []admission.Operation{admission.Create, admission.Update}, []string{"status", "scale"}},
	} {
		t.Run(name, func(t *testing.T) {
			outcomes, misuse := checkRules(check.Subject{
				Name: name, Reject: []framework.Request{framework.Create(test.object)},
				Source: harness.FromFactory(func(io.Reader) (admission.Interface, error) {
					return refusingAll{admission.NewHandler(test.handles...)}, nil
				}),
				World: []fakes.Option{fakes.WithMappings(meta.RESTMapping{
					Resource:         schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
					GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Scope: meta.RESTScopeNamespace,
				})},
			}, "P3")
			got := outcomes[0]
			verdict := framework.Fail
			if test.want == nil {
				verdict = framework.Unsupported
			}
			if len(misuse) > 0 || got.Verdict != verdict {
				t.Fatalf("%s, want %s: %s %q", got.Verdict, verdict, got.Reason, misuse)
			}
			for _, subresource := range []string{"status", "scale", "binding", "eviction", "token", "exec"} {
				want := strings.Contains(strings.Join(test.want, " "), subresource)
				if said := strings.Contains(got.Reason, `as a request for subresource "`+subresource+`"`); said != want {
					t.Errorf("subresource %q: reported %t, want %t: %s", subresource, said, want, got.Reason)
				}
			}
		})
	}
}
