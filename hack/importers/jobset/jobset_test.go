// Package jobset tests the webhooks of JobSet with its own versions of Kubernetes and controller-runtime, as
// its repository would.
package jobset

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/webhooks"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

const project = "sigs.k8s.io/jobset"

// Adding the conformance suite to JobSet does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

// handler serves the webhooks.
func handler(t *testing.T) http.Handler {
	t.Helper()
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := jobset.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hook, err := webhooks.NewJobSetWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mutate-jobset-x-k8s-io-v1alpha2-jobset", admission.WithCustomDefaulter(scheme, &jobset.JobSet{}, hook))
	mux.Handle("/validate-jobset-x-k8s-io-v1alpha2-jobset", admission.WithCustomValidator(scheme, &jobset.JobSet{}, hook))
	return mux
}

func TestScenarios(t *testing.T) {
	importers.Scenarios(t, project, handler(t), "config/components/crd/bases", "config/components/webhook/manifests.yaml")
}

// TestContract checks the rules for webhooks.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler:        handler(t),
		Configurations: importers.Files(t, project, "config/components/crd/bases/*.yaml", "config/components/webhook/manifests.yaml"),
		Allow:          webhook.SampleFiles("testdata/good.yaml"),
		Reject:         []webhook.Sample{{Manifest: webhook.Manifest{File: "testdata/bad.yaml"}, Message: "missing"}},
	})
}
