package conformance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/framework/engine/provider"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// TestConformance runs the whole catalogue on envtest. ADMISSIONTEST_K8S_VERSION
// chooses the Kubernetes version.
func TestConformance(t *testing.T) {
	if os.Getenv(fixtureVariable) != "" {
		t.Skip("this process runs the fixture")
	}
	envtest.DiscardLogs()
	conformance.Run(t, conformance.Options{
		Strict: true, // the catalogue is written from what this server does
		Provider: provider.NewEnvtest(provider.EnvtestOptions{
			Assets:   assets.Options{Version: os.Getenv("ADMISSIONTEST_K8S_VERSION")},
			Progress: func(line string) { _, _ = fmt.Fprintln(os.Stderr, line) },
		}),
	})
}
