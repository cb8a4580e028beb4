package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/golden"

	"github.com/google/go-cmp/cmp"
	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// everything has an outcome of every verdict, and one of none.
func everything() report.Report {
	r := report.New(framework.TargetInfo{
		Kind: framework.TargetEnvtest, ServerVersion: "v1.36.3",
		FeatureGates: map[string]bool{"MutatingAdmissionPolicy": true, "AllAlpha": false},
		Capabilities: framework.Capabilities(),
	})
	r.Environment = &report.Environment{Admissiontest: "v0.3.0", Platform: "linux/amd64", Started: "2026-11-22T20:00:00Z"}
	r.Shard = &report.Shard{Index: 1, Count: 2, Selected: 24}
	r.Strict = true
	r.Timing = report.Timing{TargetReady: 3.1, Catalogue: 2.25, Total: 5.5}
	r.Outcomes = []report.Outcome{
		{Name: "warn.z", Area: "warn", Level: framework.May, Verdict: framework.Pass, Requirement: "Z.", DurationSeconds: 0.02},
		failed(),
		manyMismatches(),
		{Name: "reinvocation.never.once", Area: "reinvocation", Level: framework.Must, Verdict: framework.Pass, Requirement: "Once.", Behaviours: []string{"REINV-001"}, DurationSeconds: 0.0123},
		{Name: "reinvocation.lost", Area: "reinvocation", Level: framework.Should, Verdict: framework.Errored, Requirement: "Lost.", Source: []string{"https://example.com/lost"}, Reason: "not reached: send request: connection refused\nsecond line", Rerun: "admissiontest run reinvocation.lost"},
		{Name: "equiv.fence", Area: "equiv", Level: framework.Must, Verdict: framework.Inconclusive, Requirement: "Fence.", Reason: "the fence did not answer within 30s", Evidence: &report.Evidence{Step: 2}},
		{Name: "equiv.gate", Area: "equiv", Level: framework.Must, Verdict: framework.Unsupported, Requirement: "Gate.", Reason: "needs feature gate X"},
		{Name: "equiv.skipped", Area: "equiv", Level: framework.Should, Verdict: framework.Skipped, Requirement: "Skipped.", Reason: "--skip equiv.*"},
		{Name: "wire.pods", Area: "wire", Level: framework.Must, Verdict: framework.Unsupported, Requirement: "Pods.", Reason: "arrange: the API server does not serve v1 Pod", NotServed: "v1 Pod"},
		{Name: "wire.scale", Area: "wire", Level: framework.Must, Verdict: framework.Unsupported, Requirement: "Scale.", Reason: "step 1: the API server does not serve apps/v1 Deployment", NotServed: "apps/v1 Deployment"},
		{Name: "wire.more-pods", Area: "wire", Level: framework.Must, Verdict: framework.Unsupported, Requirement: "More.", Reason: "arrange: the API server does not serve v1 Pod", NotServed: "v1 Pod"},
		{Name: "equiv.unknown", Area: "equiv", Level: framework.May, Requirement: "Unknown."},
	}
	return r
}

func failed() report.Outcome {
	return report.Outcome{
		Name: "reinvocation.if-needed.again", Area: "reinvocation", Level: framework.Must, Verdict: framework.Fail,
		Requirement: "A webhook with IfNeeded is called again <after> a later change.",
		Source:      []string{"https://example.com/docs#reinvocation", "https://example.com/code.go"},
		Behaviours:  []string{"REINV-002"}, File: "scenarios/reinvocation/again.yaml", DurationSeconds: 0.0312,
		Reason: "step 1 (line 31): calls[1]: expected a call of c",
		Rerun:  "admissiontest run reinvocation.if-needed.again",
		Evidence: &report.Evidence{
			Step: 1, Line: 31, Action: "create ConfigMap subject", Response: "201", DurationMillis: 14.5,
			Mismatches: []report.Mismatch{
				{Path: "calls[1].request.operation", Expected: `one of "CREATE", "CONNECT"`, Actual: `"UPDATE"`},
				{Path: "calls", Expected: `["a","c"]`, Actual: `["a","b","c"]`},
			},
			Timeline: []report.TimelineEntry{
				{
					OffsetMillis: 1.25, Phase: "mutating", Webhook: "a", Summary: "CREATE ns/subject: allowed after 1ms", Observed: true,
					Request: "CREATE ns/subject", Answer: "allowed, patch (3 operations)", DurationMillis: new(float64),
					Patch: []report.PatchOperation{{Op: "add", Path: "/data", Value: `{"a":"<b>"}`}, {Op: "remove", Path: "/x"}}, MorePatch: 1,
				},
				{OffsetMillis: 12.5, Phase: "mutating", Round: 1, Webhook: "b", Summary: "CREATE ns/subject:\nallowed", Observed: true, Divergent: true},
				{Phase: "audit", Summary: "mutation.webhook.admission.k8s.io/round_0_index_0 = {}"},
			},
		},
	}
}

func manyMismatches() report.Outcome {
	outcome := report.Outcome{
		Name: "warn.many", Area: "warn", Level: framework.Should, Verdict: framework.Fail, Requirement: "Many.",
		File: "warn/many.yaml", Evidence: &report.Evidence{
			Step: 3, Response: "400 \x1b[31mBadRequest\x1b[0m]]>\xff",
			Timeline: []report.TimelineEntry{{Phase: "validating", Webhook: "v", Summary: "denied"}},
		},
	}
	for _, path := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		outcome.Evidence.Mismatches = append(outcome.Evidence.Mismatches, report.Mismatch{Path: "object." + path, Expected: "1", Actual: "2"})
	}
	return outcome
}

func TestWriters(t *testing.T) {
	console := func(options report.ConsoleOptions) func(io.Writer, report.Report) error {
		return func(w io.Writer, r report.Report) error { return report.WriteConsole(w, r, options) }
	}
	tests := []struct {
		golden string
		write  func(io.Writer, report.Report) error
	}{
		{"report.json", report.WriteJSON},
		{"junit.xml", report.WriteJUnit},
		{"console.txt", console(report.ConsoleOptions{})},
		{"console-verbose.txt", console(report.ConsoleOptions{Verbose: true})},
		{"console-color.txt", console(report.ConsoleOptions{Color: true})},
	}
	for _, test := range tests {
		t.Run(test.golden, func(t *testing.T) {
			r := everything()
			var forward, backward bytes.Buffer
			if err := test.write(&forward, r); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", test.golden), forward.String())
			for i, j := 0, len(r.Outcomes)-1; i < j; i, j = i+1, j-1 {
				r.Outcomes[i], r.Outcomes[j] = r.Outcomes[j], r.Outcomes[i]
			}
			first := r.Outcomes[0].Name
			if err := test.write(&backward, r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(forward.String(), backward.String()); diff != "" {
				t.Errorf("the order of the outcomes shows:\n%s", diff)
			}
			if r.Outcomes[0].Name != first || r.Outcomes[0].Verdict != "" {
				t.Error("the writer changed the report that it was given")
			}
		})
		t.Run(test.golden+" to a full disk", func(t *testing.T) {
			if err := test.write(fullDisk{}, everything()); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "write report ") {
				t.Errorf("got %v, want %v", err, errFull)
			}
		})
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// nearlyFull takes one write.
type nearlyFull struct{ writes int }

func (n *nearlyFull) Write(p []byte) (int, error) {
	n.writes++
	if n.writes > 1 {
		return 0, errFull
	}
	return len(p), nil
}

func TestJUnitToANearlyFullDisk(t *testing.T) {
	if err := report.WriteJUnit(&nearlyFull{}, everything()); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func TestJUnitIsXMLThatCounts(t *testing.T) {
	var text bytes.Buffer
	if err := report.WriteJUnit(&text, everything()); err != nil {
		t.Fatal(err)
	}
	var suites junit.Testsuites
	if err := xml.Unmarshal(text.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	got := []int{suites.Tests, suites.Failures, suites.Errors, suites.Skipped, len(suites.Suites)}
	if diff := cmp.Diff([]int{12, 2, 3, 5, 4}, got); diff != "" {
		t.Errorf("tests, failures, errors, skipped, suites (-want +got):\n%s", diff)
	}
}

func TestJSONReadsBack(t *testing.T) {
	var text bytes.Buffer
	if err := report.WriteJSON(&text, report.Report{Summary: report.Summary{Pass: 7, Total: 7}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `"outcomes": []`) {
		t.Errorf("got %s, want outcomes to be a list", &text)
	}
	var back report.Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	want := report.Report{APIVersion: report.APIVersion, Kind: report.Kind, Outcomes: []report.Outcome{}}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountSums(t *testing.T) {
	got := report.Count(everything().Outcomes)
	want := report.Summary{Pass: 2, Fail: 2, Unsupported: 4, Skipped: 1, Inconclusive: 1, Error: 2, Total: 12}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := got.String(), "2 pass, 2 fail, 4 unsupported, 1 skipped, 1 inconclusive, 2 error"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (report.Summary{}).String(); got != "none" {
		t.Errorf("got %q, want none", got)
	}
}

func outcomes(pairs ...string) report.Report {
	var r report.Report
	for _, pair := range pairs {
		level, verdict, _ := strings.Cut(pair, " ")
		r.Outcomes = append(r.Outcomes, report.Outcome{Level: framework.Level(level), Verdict: framework.Verdict(verdict)})
	}
	return r
}

func TestExitCode(t *testing.T) {
	tests := []struct {
		name          string
		report        report.Report
		plain, strict int
	}{
		{"nothing", outcomes(), 3, 3},
		{"nothing could be judged", outcomes("MUST unsupported", "MUST skipped", "SHOULD unsupported"), 3, 3},
		{"nothing passed", outcomes("SHOULD fail", "MUST unsupported"), 3, 1},
		{"a MAY passed", outcomes("MAY pass", "MUST unsupported"), 0, 0},
		{"known failure", report.Report{Outcomes: []report.Outcome{{Verdict: framework.Fail, KnownFailing: "ticket"}}}, 0, 0},
		{"all that is well", outcomes("MUST pass", "MUST unsupported", "MUST skipped", "SHOULD pass"), 0, 0},
		{"MUST fail", outcomes("MUST pass", "MUST fail"), 1, 1},
		{"SHOULD fail", outcomes("MUST pass", "SHOULD fail"), 0, 1},
		{"MAY of all kinds", outcomes("MAY fail", "MAY error", "MAY inconclusive"), 3, 3},
		{"MAY of all kinds and a pass", outcomes("MAY fail", "MAY error", "MAY inconclusive", "MUST pass"), 0, 0},
		{"MUST error", outcomes("MUST error"), 4, 4},
		{"MUST inconclusive", outcomes("MUST inconclusive"), 5, 5},
		{"SHOULD error", outcomes("SHOULD error", "MUST pass"), 0, 4},
		{"SHOULD inconclusive", outcomes("SHOULD inconclusive", "MUST pass"), 0, 5},
		{"error before inconclusive", outcomes("MUST inconclusive", "MUST error", "MUST inconclusive"), 4, 4},
		{"fail before all", outcomes("MUST inconclusive", "MUST error", "MUST fail"), 1, 1},
		{"strict fail before error", outcomes("MUST error", "SHOULD fail"), 4, 1},
		{"a mistake of any level", report.Report{Outcomes: []report.Outcome{{Verdict: framework.Pass}, {Level: framework.May, Verdict: framework.Errored, Mistake: true}, {Verdict: framework.Inconclusive}}}, 2, 2},
		{"error before mistake", report.Report{Outcomes: []report.Outcome{{Verdict: framework.Errored}, {Verdict: framework.Errored, Mistake: true}}}, 4, 4},
		{"no verdict", outcomes("MUST "), 4, 4},
		{"unknown level", outcomes("must fail"), 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if plain, strict := test.report.ExitCode(false), test.report.ExitCode(true); plain != test.plain || strict != test.strict {
				t.Errorf("got %d, strictly %d; want %d, strictly %d", plain, strict, test.plain, test.strict)
			}
		})
	}
}

// With FailOnUnsupported, an unsupported scenario fails a run, and people and programs see which
// one.
func TestFailOnUnsupported(t *testing.T) {
	for name, test := range map[string]struct {
		report report.Report
		want   int
	}{
		"MAY":          {outcomes("MUST pass", "MAY unsupported"), report.ExitFail},
		"before error": {outcomes("MUST error", "MUST unsupported"), report.ExitFail},
		"skipped":      {outcomes("MUST pass", "MUST skipped"), report.ExitPass},
	} {
		t.Run(name, func(t *testing.T) {
			test.report.FailOnUnsupported = true
			if got := test.report.ExitCode(false); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails %t", fails), func(t *testing.T) {
			r := report.Report{FailOnUnsupported: fails, Outcomes: []report.Outcome{
				{Name: "a.pass", Verdict: framework.Pass}, {Name: "a.unsupported", Verdict: framework.Unsupported, Reason: "no such gate"},
			}}
			var console, junit strings.Builder
			if err := errors.Join(report.WriteConsole(&console, r, report.ConsoleOptions{}), report.WriteJUnit(&junit, r)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(console.String(), "unsupported  a.unsupported") && strings.Contains(console.String(), "no such gate") && strings.HasSuffix(console.String(), ": FAIL\n"); got != fails {
				t.Errorf("with %t, the console has\n%s", fails, console.String())
			}
			if got := strings.Contains(junit.String(), `<failure message="no such gate" type="unsupported">`); got != fails {
				t.Errorf("with %t, JUnit has\n%s", fails, junit.String())
			}
		})
	}
}

func TestConsoleEndsWithTheVerdict(t *testing.T) {
	cut := outcomes("MUST pass")
	cut.Incomplete = "lost the API server\nat last"
	interrupted := outcomes("MUST error")
	interrupted.Interrupted, interrupted.Incomplete = true, "interrupted"
	tests := []struct {
		name   string
		report report.Report
		strict bool
		want   string
	}{
		{"pass", outcomes("MUST pass", "SHOULD fail"), false, ": PASS\n"},
		{"strict", outcomes("MUST pass", "SHOULD fail"), true, ": FAIL\n"},
		{"error", outcomes("MUST error"), false, ": ERROR\n"},
		{"inconclusive", outcomes("MUST inconclusive"), false, ": INCONCLUSIVE\n"},
		{"incomplete", cut, false, ": ERROR\n"},
		{"interrupted", interrupted, false, ": INTERRUPTED\n"},
		{"nothing", outcomes(), false, ": NOTHING SELECTED\n"},
		{"nothing judged", outcomes("MUST unsupported", "MUST skipped"), false, ": NOTHING JUDGED\n"},
		{"nothing passed", outcomes("SHOULD fail"), false, ": NOTHING PASSED\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			if err := report.WriteConsole(&text, test.report, report.ConsoleOptions{Strict: test.strict}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(text.String(), test.want) {
				t.Errorf("got %q, want it to end with %q", text.String(), test.want)
			}
		})
	}
	var text strings.Builder
	if err := report.WriteConsole(&text, cut, report.ConsoleOptions{}); err != nil || !strings.Contains(text.String(), "incomplete: lost the API server\n  at last\n") {
		t.Errorf("got %q, %v, want the reason that it is incomplete", text.String(), err)
	}
	foreign := outcomes("MUST pass")
	foreign.ForeignRequests = 7
	text.Reset()
	if err := report.WriteConsole(&text, foreign, report.ConsoleOptions{}); err != nil || !strings.Contains(text.String(), "rejected: 7 requests to the webhooks") || !strings.HasSuffix(text.String(), ": PASS\n") {
		t.Errorf("got %q, %v, want the number of rejected requests, and PASS", text.String(), err)
	}
}
