package ginkgo

import (
	"os"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/suite/suitetest"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// fixtureVariable, if it is set, makes this test binary run the fixture: a suite on a
// server that is not an API server. Its value is a list of words that change it.
const fixtureVariable = "CONFORMANCE_FIXTURE"

// reportVariable is the directory for the report of the fixture.
const reportVariable = "CONFORMANCE_FIXTURE_REPORT"

// TestFixture is the suite that the other tests run in another process, because Ginkgo
// allows one suite in each.
func TestFixture(t *testing.T) {
	words := os.Getenv(fixtureVariable)
	if words == "" {
		t.Skip("other tests run it")
	}
	options := conformance.Options{
		FS: suitetest.Scenarios(), Strict: strings.Contains(words, "strict"),
		Skip:         map[string]string{"two.skipped": "ticket 12"},
		KnownFailing: map[string]string{"two.known": "ticket 13"},
		ReportDir:    os.Getenv(reportVariable),
		Select:       suitetest.SelectIn(words),
	}
	run(t, options, &suitetest.Provider{Broken: strings.Contains(words, "broken"), Dies: strings.Contains(words, "dies"), Server: suitetest.VersionIn(words)})
	if strings.Contains(words, "again") {
		run(t, options, &suitetest.Provider{})
	}
}
