package conformance_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// testAdmission runs one area of the catalogue on an API server that starts on this machine. In
// your test file it is called TestAdmission. With Target.Config or
// Target.Environment it runs on your API server, with Selection.Paths it runs your scenarios.
func testAdmission(t *testing.T) {
	conformance.Run(t, conformance.Options{
		Selection: conformance.Selection{
			Names:  []string{"reinvocation"},
			Levels: []framework.Level{framework.Must},
			Skip:   map[string]string{"reinvocation.never.*": "issue 123"},
		},
	})
}

// The MUST requirements of one area. TestExample runs this test.
func Example() {
	_ = testAdmission
}
