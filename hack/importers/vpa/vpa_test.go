// Package vpa tests the webhook of the VerticalPodAutoscaler with its own versions of Kubernetes, as its
// repository would.
package vpa

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/patch"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/recommendation"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/vpa"
	autoscaling "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	api "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

const project = "k8s.io/autoscaler/vertical-pod-autoscaler"

// Adding the conformance suite to the VerticalPodAutoscaler does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

// recommended is a VerticalPodAutoscaler that recommends 100m of CPU for the container main of each Pod, except for the mirror
// pods of a Node, which belong to no workload.
type recommended struct{}

func (recommended) GetMatchingVPA(_ context.Context, pod *corev1.Pod) *autoscaling.VerticalPodAutoscaler {
	if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return nil
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	found := &autoscaling.VerticalPodAutoscaler{}
	found.Name = "recommended"
	found.Status.Recommendation = &autoscaling.RecommendedPodResources{
		ContainerRecommendations: []autoscaling.RecommendedContainerResources{{ContainerName: "main", Target: cpu, LowerBound: cpu, UpperBound: cpu}},
	}
	return found
}

// handler serves the webhook for Pods and VerticalPodAutoscalers.
func handler() http.Handler {
	limits := limitrange.NewNoopLimitsCalculator()
	provider := recommendation.NewProvider(limits, api.NewCappingRecommendationProcessor(limits))
	server := logic.NewAdmissionServer(pod.NewDefaultPreProcessor(), vpa.NewDefaultPreProcessor(), limits, recommended{},
		[]patch.Calculator{patch.NewResourceUpdatesCalculator(provider), patch.NewObservedContainersCalculator()})
	return http.HandlerFunc(server.Serve)
}

// TestContract checks the rules for webhooks. The waivers are findings: docs/findings.md.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler:        handler(),
		Configurations: append(importers.Files(t, project, "deploy/vpa-v1-crd-gen.yaml"), webhook.Files("testdata/configuration.yaml")...),
		Allow:          webhook.SampleFiles("testdata/good.yaml", "testdata/pod.yaml"),
		Reject:         []webhook.Sample{{Manifest: webhook.Manifest{File: "testdata/bad.yaml"}, Message: "max resource for cpu is lower than min"}},
		Enforced:       []string{"/spec/containers/*/resources/requests", "/metadata/annotations/vpaObservedContainers"}, // what it is for
	},
		webhook.Waive("unknown-fields-survive", "resources without requests and limits are replaced by {}, with resources.claims"),
		webhook.Waive("finalizers-can-be-removed", "an update is judged like a creation, also of an object in deletion"),
		webhook.Waive("old-objects-can-change", "an update is judged like a creation, also if the old object has the same violation"),
		webhook.Waive("malformed-reviews-are-refused", "logic/server.go uses the request without a check for nil"),
		webhook.Waive("bodies-are-limited", "logic/server.go reads every body as a whole"),
		webhook.Waive("only-json-reviews-are-answered", "what cannot be decoded is allowed, on purpose"),
	)
}
