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
)

const project = "sigs.k8s.io/lws"

// Adding the conformance suite to LWS does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

func TestScenarios(t *testing.T) {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := lws.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hook := &webhooks.LeaderWorkerSetWebhook{}
	mux := http.NewServeMux()
	mux.Handle("/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset", admission.WithDefaulter[*lws.LeaderWorkerSet](scheme, hook))
	mux.Handle("/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset", admission.WithValidator[*lws.LeaderWorkerSet](scheme, hook))
	importers.Scenarios(t, project, mux, "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml", "config/webhook/manifests.yaml")
}
