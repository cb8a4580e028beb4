package conformance_test

import (
	"os"
	"testing"

	"github.com/admissiontest/admissiontest/suites/conformance"
)

// TestConformance runs the whole catalogue on envtest. ADMISSIONTEST_K8S_VERSION is the
// version of Kubernetes.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Options{
		Target: conformance.Target{Version: os.Getenv("ADMISSIONTEST_K8S_VERSION")},
		Report: conformance.Report{Strict: true}, // the catalogue describes what this server does
	})
}

// TestExample runs the test that Example shows.
func TestExample(t *testing.T) { testAdmission(t) }
