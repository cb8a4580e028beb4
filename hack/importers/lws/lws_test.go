// Package lws tests the webhooks of LeaderWorkerSet with its own versions of Kubernetes and
// controller-runtime, as its repository would.
package lws

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/webhooks"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

const project = "sigs.k8s.io/lws"

// Adding the conformance suite to LWS does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

// handler serves the webhooks of LeaderWorkerSets.
func handler(t *testing.T) http.Handler {
	t.Helper()
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := lws.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hook := &webhooks.LeaderWorkerSetWebhook{}
	mux := http.NewServeMux()
	mux.Handle("/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset", admission.WithDefaulter[*lws.LeaderWorkerSet](scheme, hook))
	mux.Handle("/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset", admission.WithValidator[*lws.LeaderWorkerSet](scheme, hook))
	return mux
}

const definition, configurations = "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml", "config/webhook/manifests.yaml"

func TestScenarios(t *testing.T) {
	importers.Scenarios(t, project, handler(t), definition, configurations)
}

// TestContract checks the rules for webhooks. The waivers are findings: docs/findings.md.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler:        handler(t),
		Configurations: importers.Files(t, project, definition, configurations),
		Allow:          webhook.SampleFiles("testdata/good.yaml"),
		Reject:         []webhook.Sample{{Manifest: webhook.Manifest{File: "testdata/bad.yaml"}, Message: "must not exceed 2147483647"}},
	},
		webhook.Flaky("finalizers-can-be-removed", "ValidateUpdate judges objects in deletion too"),
		webhook.Flaky("old-objects-can-change", "ValidateUpdate judges what the old object already has"),
	)
}
