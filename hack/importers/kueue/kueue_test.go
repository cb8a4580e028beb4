// Package kueue tests webhooks of Kueue with its own versions of Kubernetes and controller-runtime, as its
// repository would.
package kueue

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/webhooks"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

const project = "sigs.k8s.io/kueue"

// Adding the conformance suite to Kueue does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

// handler serves the webhooks for ResourceFlavors and ClusterQueues.
func handler(t *testing.T) http.Handler {
	t.Helper()
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	flavors, queues := &webhooks.ResourceFlavorWebhook{}, &webhooks.ClusterQueueWebhook{}
	mux := http.NewServeMux()
	mux.Handle("/mutate-kueue-x-k8s-io-v1beta2-resourceflavor", admission.WithDefaulter[*kueue.ResourceFlavor](scheme, flavors))
	mux.Handle("/validate-kueue-x-k8s-io-v1beta2-resourceflavor", admission.WithValidator[*kueue.ResourceFlavor](scheme, flavors))
	mux.Handle("/mutate-kueue-x-k8s-io-v1beta2-clusterqueue", admission.WithDefaulter[*kueue.ClusterQueue](scheme, queues))
	mux.Handle("/validate-kueue-x-k8s-io-v1beta2-clusterqueue", admission.WithValidator[*kueue.ClusterQueue](scheme, queues))
	return mux
}

// TestContract checks the rules for webhooks. The waivers are findings: docs/findings.md.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler: handler(t),
		Configurations: importers.Files(t, project, "config/components/crd/bases/kueue.x-k8s.io_resourceflavors.yaml",
			"config/components/crd/bases/kueue.x-k8s.io_clusterqueues.yaml", "config/components/webhook/manifests.yaml"),
		Allow: webhook.SampleFiles("testdata/flavor.yaml", "testdata/queue.yaml"),
		Reject: []webhook.Sample{
			{Manifest: webhook.Manifest{File: "testdata/flavor.bad.yaml"}, Message: "must be unique by key and effect"},
			{Manifest: webhook.Manifest{File: "testdata/queue.bad.yaml"}, Message: "nominalQuota"},
		},
	},
		webhook.Flaky("finalizers-can-be-removed", "ValidateUpdate judges objects in deletion too"),
		webhook.Flaky("old-objects-can-change", "ValidateUpdate judges what the old object already has"),
	)
}
