package ginkgo

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/suites/conformance"
	"github.com/admissiontest/admissiontest/suites/conformance/internal/plan"
)

// T is the part of *testing.T that Run uses.
type T interface {
	Helper()
	Fail()
	Fatalf(format string, arguments ...any)
}

// cleanupGrace is how long the engine may remove what it created after Ginkgo interrupted
// it. The engine's own limits are shorter.
const cleanupGrace = 4 * time.Minute

// title is the name of the suite in Ginkgo's output and reports.
const title = "Kubernetes admission"

// ran is set by the first Run of this process. Ginkgo would end the process for a second suite, and
// has no function that reports whether a suite has run.
var ran atomic.Bool //nolint:gochecknoglobals // Ginkgo's state is one for each process too

// Run runs the suite. Call it only once in a test binary: a second call fails the test. If an
// option is wrong or a scenario cannot be read, Run ends the test before it starts anything.
func Run(t T, options conformance.Options) {
	t.Helper()
	run(t, options, nil)
}

func run(t T, options conformance.Options, provider target.Provider) {
	t.Helper()
	chosen, err := options.Plan(provider, progress{}.Stage)
	if err != nil {
		t.Fatalf("conformance: %s", redact.Escaped(err.Error()))
		return
	}
	if ran.Swap(true) {
		t.Fatalf("conformance: Ginkgo runs one suite in a test binary, and Run was called before; " +
			"select all scenarios in one Run, put the second one in another package, or call conformance.Run, which can be called several times")
		return
	}
	s := &specs{plan: chosen, selected: map[string]bool{}}
	s.build()
	config, reporter := ginkgo.GinkgoConfiguration()
	config.FailOnEmpty = true
	for _, spec := range ginkgo.PreviewSpecs(title, config, reporter).SpecReports {
		if spec.LeafNodeType == types.NodeTypeIt && !spec.State.Is(types.SpecStateSkipped|types.SpecStatePending) {
			s.selected[spec.LeafNodeText] = true
		}
	}
	ginkgo.RunSpecs(t, title, config, reporter)
}

// specs is the tree of one Run.
type specs struct {
	plan *plan.Plan
	// selected has the names of the scenarios whose specs Ginkgo runs.
	selected map[string]bool
	result   result
}

// result is what the process that ran the engine sends to the other processes, as JSON.
type result struct {
	Report report.Report
	// Error is why the run is incomplete, or "".
	Error string
}

// build builds the tree: a container for each area, a spec for each scenario.
func (s *specs) build() {
	ginkgo.SynchronizedBeforeSuite(s.execute, s.receive, ginkgo.GracePeriod(cleanupGrace))
	for _, area := range plan.Areas(s.plan.Scenarios) {
		ginkgo.Describe(area.Name, func() {
			for _, one := range area.Scenarios {
				ginkgo.It(one.Metadata.Name, ginkgo.Label(s.plan.Labels(one)...), location(one), func() { s.report(one) })
			}
		})
	}
	ginkgo.AfterSuite(func() {
		if s.result.Error != "" {
			ginkgo.Fail("the run is incomplete: " + redact.Escaped(s.result.Error))
		}
		if reason := s.plan.NotGreen(s.result.Report); reason != "" {
			ginkgo.Fail(reason)
		}
	})
}

// location makes Ginkgo print the file of the scenario instead of this file.
func location(one scenario.Scenario) types.CodeLocation {
	return types.CodeLocation{FileName: one.File, LineNumber: 1}
}

// execute runs the engine, in one process only.
func (s *specs) execute(ctx context.Context) []byte {
	chosen := scenario.Keep(s.plan.Scenarios, func(one scenario.Scenario) bool { return s.selected[one.Metadata.Name] })
	r, err := s.plan.Run(ctx, chosen, progress{}, rerun)
	all := result{Report: r}
	if err != nil {
		all.Error = err.Error()
	}
	data, err := json.Marshal(all)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode the report: %v", err))
	}
	return data
}

// receive takes the result of the process that ran the engine.
func (s *specs) receive(data []byte) {
	if err := json.Unmarshal(data, &s.result); err != nil {
		ginkgo.Fail(fmt.Sprintf("decode the report: %v", err))
	}
}

// report ends a spec according to the outcome of its scenario.
func (s *specs) report(one scenario.Scenario) {
	outcome := plan.Outcome(s.result.Report, one)
	ginkgo.AddReportEntry("admissiontest", entry{outcome}, ginkgo.ReportEntryVisibilityFailureOrVerbose)
	switch verdict, text := s.plan.Judge(outcome); verdict {
	case plan.Failed:
		ginkgo.Fail(text)
	case plan.Skipped:
		ginkgo.Skip(text)
	}
}

// rerun returns the command that runs one scenario again.
func rerun(one scenario.Scenario) string {
	return fmt.Sprintf("go test --ginkgo.focus='%s$'", regexp.QuoteMeta(one.Metadata.Name))
}

// entry is an outcome as a report entry of Ginkgo.
type entry struct{ report.Outcome }

// String returns the text that Ginkgo prints for the entry.
func (e entry) String() string { return fmt.Sprintf("%s in %.3f s", e.Verdict, e.DurationSeconds) }

// progress writes the stages of the run to where Ginkgo shows them with -v.
type progress struct{}

// Stage writes one line.
func (progress) Stage(text string) { _, _ = fmt.Fprintln(ginkgo.GinkgoWriter, redact.Escaped(text)) }

// Done does nothing: the spec reports the outcome.
func (progress) Done(report.Outcome) {}
