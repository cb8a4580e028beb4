package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/report"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// T is what Run needs of a *testing.T.
type T interface {
	Helper()
	Fail()
	Fatalf(format string, arguments ...any)
}

// cleanupGrace is how long the engine may remove what it created after Ginkgo
// interrupted it; the engine has bounds of its own, below this.
const cleanupGrace = 4 * time.Minute

// title is the name of the suite in Ginkgo's output and reports.
const title = "Kubernetes admission"

// Run runs the suite. Options that cannot be used, and scenarios that cannot be
// read, end the test before anything is started.
func Run(t T, options Options) {
	t.Helper()
	p, err := options.resolve()
	if err != nil {
		t.Fatalf("conformance: %v", err)
		return
	}
	s := &suite{plan: p, selected: map[string]bool{}}
	s.build()
	config, reporter := ginkgo.GinkgoConfiguration()
	config.FailOnEmpty = true // nothing selected is no success
	for _, spec := range ginkgo.PreviewSpecs(title, config, reporter).SpecReports {
		if spec.LeafNodeType == types.NodeTypeIt && !spec.State.Is(types.SpecStateSkipped|types.SpecStatePending) {
			s.selected[spec.LeafNodeText] = true
		}
	}
	ginkgo.RunSpecs(t, title, config, reporter)
}

// suite is the tree of one Run, and what its specs tell.
type suite struct {
	plan plan
	// selected are the names of the scenarios whose specs Ginkgo will run.
	selected map[string]bool
	told     told
}

// told is what the process that ran the engine hands to all others, as JSON.
type told struct {
	Report report.Report
	// Trouble is why the run is not to be trusted as a whole, or "".
	Trouble string
}

// build makes the tree: a container for each area, a spec for each scenario.
func (s *suite) build() {
	ginkgo.SynchronizedBeforeSuite(s.execute, s.receive, ginkgo.GracePeriod(cleanupGrace))
	var areas []string
	byArea := map[string][]scenario.Scenario{}
	for _, one := range s.plan.scenarios {
		if byArea[one.Area] == nil {
			areas = append(areas, one.Area)
		}
		byArea[one.Area] = append(byArea[one.Area], one)
	}
	for _, area := range areas {
		ginkgo.Describe(area, func() {
			for _, one := range byArea[area] {
				ginkgo.It(one.Metadata.Name, ginkgo.Label(labels(one, s.plan.tiers)...), place(one), func() { s.tell(one) })
			}
		})
	}
	ginkgo.AfterSuite(func() {
		if s.told.Trouble != "" {
			ginkgo.Fail("the run was not carried out as a whole: " + s.told.Trouble)
		}
	})
}

// place makes Ginkgo point at the scenario instead of at this file.
func place(one scenario.Scenario) types.CodeLocation {
	return types.CodeLocation{FileName: one.File, LineNumber: 1}
}

// execute runs the engine, in one process only, and returns what came of it.
func (s *suite) execute(ctx context.Context) []byte {
	var chosen []scenario.Scenario
	for _, one := range s.plan.scenarios {
		if s.selected[one.Metadata.Name] {
			chosen = append(chosen, one)
		}
	}
	result, err := engine.Run(ctx, engine.Options{
		Scenarios: chosen, Provider: s.plan.Provider, Parallel: s.plan.Parallel,
		Skip: s.plan.skip, Endpoints: s.plan.Endpoints, Progress: progress{}, Rerun: rerun,
	})
	all := told{Report: result}
	if err != nil {
		all.Trouble = err.Error()
	}
	if dir := s.plan.ReportDir; dir != "" {
		if err := report.SaveDir(dir, result); err != nil {
			all.Trouble = strings.TrimSpace(all.Trouble + "\n" + err.Error())
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode what came of the run: %v", err))
	}
	return data
}

// receive takes what the engine's process found.
func (s *suite) receive(data []byte) {
	if err := json.Unmarshal(data, &s.told); err != nil {
		ginkgo.Fail(fmt.Sprintf("decode what came of the run: %v", err))
	}
}

// tell ends a spec as the outcome of its scenario demands.
func (s *suite) tell(one scenario.Scenario) {
	outcome := s.outcome(one)
	ginkgo.AddReportEntry("admissiontest", entry{outcome}, ginkgo.ReportEntryVisibilityFailureOrVerbose)
	switch outcome.Verdict {
	case framework.Pass:
	case framework.Unsupported, framework.Skipped:
		ginkgo.Skip(fmt.Sprintf("%s: %s", outcome.Verdict, outcome.Reason))
	default:
		text := report.FailureText(outcome)
		if !s.plan.counts(one.Spec.Level) {
			ginkgo.Skip(fmt.Sprintf("%s, which does not count for a %s\n%s", outcome.Verdict, one.Spec.Level, text))
		}
		ginkgo.Fail(text)
	}
}

// outcome finds the outcome of a scenario. That there is none is an error, too.
func (s *suite) outcome(one scenario.Scenario) report.Outcome {
	for _, outcome := range s.told.Report.Outcomes {
		if outcome.Name == one.Metadata.Name {
			return outcome
		}
	}
	return report.Outcome{
		Name: one.Metadata.Name, Area: one.Area, Level: one.Spec.Level, Verdict: framework.Errored,
		Requirement: one.Spec.Requirement, Source: one.Spec.Source, File: one.File,
		Reason: "the engine did not run it, though Ginkgo did: this is a fault of package conformance",
	}
}

// rerun is how to run one scenario again.
func rerun(one scenario.Scenario) string {
	return fmt.Sprintf("go test --ginkgo.focus='%s$'", regexp.QuoteMeta(one.Metadata.Name))
}

// entry is an outcome as a report entry of Ginkgo.
type entry struct{ report.Outcome }

// String is what Ginkgo prints of it.
func (e entry) String() string {
	return fmt.Sprintf("%s in %.3f s", e.Verdict, e.DurationSeconds)
}

// progress writes the stages of the run where Ginkgo shows them with -v.
type progress struct{}

// Stage writes one line.
func (progress) Stage(text string) { _, _ = fmt.Fprintln(ginkgo.GinkgoWriter, text) }

// Done writes nothing: the spec tells the outcome.
func (progress) Done(report.Outcome) {}
