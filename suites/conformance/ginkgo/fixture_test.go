package ginkgo

import (
	"os"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/target/targettest"
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
		Selection: conformance.Selection{FS: os.DirFS("../testdata/fixture"), Names: list(word(words, "only=")), Skip: map[string]string{"two.skipped": "ticket 12"}},
		Report: conformance.Report{
			Strict: strings.Contains(words, "strict"), Dir: os.Getenv(reportVariable), KnownFailing: map[string]string{"two.known": "ticket 13"},
		},
	}
	run(t, options, &targettest.Provider{Broken: strings.Contains(words, "broken"), Dies: strings.Contains(words, "dies"), Server: word(words, "server=")})
	if strings.Contains(words, "again") {
		run(t, options, &targettest.Provider{})
	}
}

// word returns the rest of the first word with a prefix, or "".
func word(words, prefix string) string {
	for one := range strings.FieldsSeq(words) {
		if rest, found := strings.CutPrefix(one, prefix); found {
			return rest
		}
	}
	return ""
}

// list returns the items of a list with commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
