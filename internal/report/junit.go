package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/admissiontest/admissiontest/framework"
)

// WriteJUnit writes the Report as JUnit XML: a test suite for each area and a test case
// for each scenario. A fail is a failure, with the level as its type; a known failure is
// skipped. An error or inconclusive is an error. Skipped and unsupported are skipped; with
// FailOnUnsupported, unsupported is a failure.
func WriteJUnit(w io.Writer, r Report) error {
	r = r.Ordered()
	suites := testsuites{Testsuites: junit.Testsuites{Name: "admissiontest", Time: seconds(r.Timing.Total)}}
	for i, area := range areas(r.Outcomes) {
		suite := testsuite{Testsuite: junit.Testsuite{Name: area.name, ID: i}}
		suite.AddProperty("target", printable(r.Target.Kind))
		suite.AddProperty("serverVersion", printable(r.Target.ServerVersion))
		total := 0.0
		for _, outcome := range area.outcomes {
			test := testcase(outcome)
			if r.FailOnUnsupported && outcome.Verdict == framework.Unsupported {
				test.Skipped, test.Failure = nil, problem(outcome, string(framework.Unsupported))
			}
			suite.AddTestcase(test)
			suite.Cases = append(suite.Cases, testcaseAt{test, outcome.File, outcome.line()})
			total += outcome.DurationSeconds
		}
		suite.Time = seconds(total)
		suite.Testcases = nil // Cases has the test cases
		suites.AddSuite(suite.Testsuite)
		suites.All = append(suites.All, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write report as JUnit XML: %w", err)
	}
	suites.Suites = nil // All has the suites
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "\t")
	err := encoder.Encode(suites)
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	if err != nil {
		return fmt.Errorf("write report as JUnit XML: %w", err)
	}
	return nil
}

// testsuites, testsuite and testcaseAt are the types of package junit, with the file and line of
// each test added. pytest writes these attributes, and GitLab reads them.
type testsuites struct {
	junit.Testsuites
	All []testsuite `xml:"testsuite"`
}

type testsuite struct {
	junit.Testsuite
	Cases []testcaseAt `xml:"testcase"`
}

type testcaseAt struct {
	junit.Testcase
	File string `xml:"file,attr,omitempty"`
	Line int    `xml:"line,attr,omitempty"`
}

// line returns the line of the step that decided, or else of the scenario.
func (o Outcome) line() int {
	if o.Evidence != nil && o.Evidence.Line > 0 {
		return o.Evidence.Line
	}
	return o.Line
}

func testcase(outcome Outcome) junit.Testcase {
	test := junit.Testcase{
		Name:      outcome.Name,
		Classname: outcome.Area,
		Time:      seconds(outcome.DurationSeconds),
	}
	if outcome.KnownFailing != "" {
		test.Skipped = &junit.Result{Message: printable("known to fail: " + outcome.KnownFailing)}
		return test
	}
	switch outcome.Verdict {
	case framework.Pass:
	case framework.Skipped, framework.Unsupported:
		test.Skipped = &junit.Result{Message: printable(string(outcome.Verdict) + ": " + outcome.Reason)}
	case framework.Fail:
		test.Failure = problem(outcome, string(outcome.Level))
	default:
		test.Error = problem(outcome, string(outcome.Verdict))
	}
	return test
}

func problem(outcome Outcome, kind string) *junit.Result {
	var text strings.Builder
	p := &printer{out: &text, options: ConsoleOptions{Verbose: true}}
	p.failure(outcome)
	return &junit.Result{Message: printable(headline(outcome)), Type: kind, Data: text.String()}
}

// headline returns the first mismatch, or the reason.
func headline(outcome Outcome) string {
	if evidence := outcome.Evidence; evidence != nil && len(evidence.Mismatches) > 0 {
		first := evidence.Mismatches[0]
		return fmt.Sprintf("%s: expected %s, actual %s", first.Path, first.Expected, first.Actual)
	}
	return outcome.Reason
}

func seconds(duration float64) string { return fmt.Sprintf("%.3f", duration) }
