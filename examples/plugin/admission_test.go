package plugin_test

import (
	"os"
	"testing"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// TestAdmission runs scenarios/ on a kube-apiserver with the plugin, which it builds if the plugin
// changed. ADMISSIONTEST_K8S_VERSION is the version of Kubernetes; empty means the default.
func TestAdmission(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds kube-apiserver")
	}
	conformance.Run(t, conformance.Options{
		Target:    conformance.Target{Version: os.Getenv("ADMISSIONTEST_K8S_VERSION")},
		Selection: conformance.Selection{Paths: []string{"scenarios"}},
		Subject:   conformance.Subject{Plugins: []envtest.Plugin{{Package: "."}}},
		Report:    conformance.Report{Strict: true, Dir: os.Getenv("REPORT_DIR")},
	})
}
