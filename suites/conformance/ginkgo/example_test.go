package ginkgo_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/conformance"
	admission "github.com/admissiontest/admissiontest/suites/conformance/ginkgo"
)

// testAdmission makes one spec of each MUST of an area. In your test file it is
// called TestAdmission.
func testAdmission(t *testing.T) {
	admission.Run(t, conformance.Options{
		Selection: conformance.Selection{Names: []string{"reinvocation"}, Levels: []framework.Level{framework.Must}},
	})
}

// The MUST requirements of one area as specs. TestExample runs this test.
func Example() {
	_ = testAdmission
}
