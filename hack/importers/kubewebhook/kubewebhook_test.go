// Package kubewebhook tests webhooks that are written with kubewebhook, as their repository would. It has no TestVersions:
// kubewebhook v2.7.0 requires Kubernetes 1.31, which is older than the oldest version that admissiontest supports.
package kubewebhook

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	kube "github.com/slok/kubewebhook/v2/pkg/http"
	"github.com/slok/kubewebhook/v2/pkg/model"
	"github.com/slok/kubewebhook/v2/pkg/webhook/mutating"
	"github.com/slok/kubewebhook/v2/pkg/webhook/validating"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

// setTeam sets the label team of a Pod that has none.
func setTeam(_ context.Context, _ *model.AdmissionReview, pod metav1.Object) (*mutating.MutatorResult, error) {
	labels := pod.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if _, ok := labels["team"]; !ok {
		labels["team"] = "unknown"
		pod.SetLabels(labels)
	}
	return &mutating.MutatorResult{}, nil
}

// images returns the images of all containers of a Pod.
func images(pod *corev1.Pod) []string {
	var all []string
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, each.Image)
	}
	for _, each := range pod.Spec.EphemeralContainers {
		all = append(all, each.Image)
	}
	return all
}

// checkImages refuses images of other registries, except for those that a Pod has already.
func checkImages(_ context.Context, review *model.AdmissionReview, object metav1.Object) (*validating.ValidatorResult, error) {
	var old corev1.Pod
	if len(review.OldObjectRaw) > 0 {
		if err := json.Unmarshal(review.OldObjectRaw, &old); err != nil {
			return nil, err
		}
	}
	for _, image := range images(object.(*corev1.Pod)) {
		if !strings.HasPrefix(image, "registry.example.com/") && !slices.Contains(images(&old), image) {
			return &validating.ValidatorResult{Message: "image " + image + " is not of registry.example.com"}, nil
		}
	}
	return &validating.ValidatorResult{Valid: true}, nil
}

// handler serves both webhooks. The mutating one gets Pods as unstructured objects: as a corev1.Pod, they would lose fields that it
// does not know.
func handler(t *testing.T) http.Handler {
	t.Helper()
	mutate, err := mutating.NewWebhook(mutating.WebhookConfig{ID: "team", Obj: &unstructured.Unstructured{}, Mutator: mutating.MutatorFunc(setTeam)})
	if err != nil {
		t.Fatal(err)
	}
	validate, err := validating.NewWebhook(validating.WebhookConfig{ID: "images", Obj: &corev1.Pod{}, Validator: validating.ValidatorFunc(checkImages)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mutate", kube.MustHandlerFor(kube.HandlerConfig{Webhook: mutate}))
	mux.Handle("/validate", kube.MustHandlerFor(kube.HandlerConfig{Webhook: validate}))
	return mux
}

// TestContract checks the rules for webhooks. The waivers are findings: docs/findings.md.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler:        handler(t),
		Configurations: webhook.Files("testdata/configuration.yaml"),
		Allow:          append(webhook.SampleFiles("testdata/good.yaml"), webhook.Sample{Manifest: webhook.Manifest{File: "testdata/good.yaml"}, Operation: "DELETE"}),
		Reject:         []webhook.Sample{{Manifest: webhook.Manifest{File: "testdata/bad.yaml"}, Message: "is not of registry.example.com"}},
	},
		webhook.Waive("malformed-reviews-are-refused", "pkg/model/review.go uses the request without a check for nil"),
		webhook.Waive("only-json-reviews-are-answered", "pkg/http/handler.go does not look at the Content-Type"),
	)
}
