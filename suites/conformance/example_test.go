package conformance_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// The catalogue on an API server that is already running. In a test file the function is
// called TestAdmission.
func Example() {
	var config *rest.Config // of your API server

	testAdmission := func(t *testing.T) {
		conformance.Run(t, conformance.Options{
			Config:       config,
			Levels:       []framework.Level{framework.Must},
			KnownFailing: map[string]string{"wire.http1-only": "issue 123"},
		})
	}
	_ = testAdmission
	// Output:
}
