// Package jobset tests the webhooks of JobSet with its own versions of Kubernetes and controller-runtime, as
// its repository would.
package jobset

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/webhooks"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

const project = "sigs.k8s.io/jobset"

// Adding the conformance suite to JobSet does not change its versions.
func TestVersions(t *testing.T) {
	raised, err := importers.Raised(t.Context(), project)
	if err != nil || len(raised) > 0 {
		t.Error(raised, err)
	}
}

func TestScenarios(t *testing.T) {
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
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	options, err := importers.Scenarios(t.Context(), project, []string{"config/components/crd/bases", "config/components/webhook/manifests.yaml"}, "system/webhook-service", server)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, options)
}
