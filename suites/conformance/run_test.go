package conformance

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// fixtureVariable, if it is set, makes this test binary run the fixture: a suite on a
// server that is not an API server, which fails. Its value is a list of words that change
// it.
const fixtureVariable = "CONFORMANCE_FIXTURE"

// reportVariable is the directory for the report of the fixture.
const reportVariable = "CONFORMANCE_FIXTURE_REPORT"

// TestFixture is the suite that the other tests run in another process.
func TestFixture(t *testing.T) {
	words := os.Getenv(fixtureVariable)
	if words == "" {
		t.Skip("other tests run it")
	}
	options := Options{
		Selection: Selection{FS: os.DirFS("testdata/fixture"), Names: list(word(words, "only=")), Skip: map[string]string{"two.skipped": "ticket 12"}},
		Report: Report{
			Strict: strings.Contains(words, "strict"), Dir: os.Getenv(reportVariable), KnownFailing: map[string]string{"two.known": "ticket 13"},
		},
	}
	options.Subject.Implementation.Project = "fixture"
	run(t, options, &targettest.Provider{Broken: strings.Contains(words, "broken"), Dies: strings.Contains(words, "dies"), Server: word(words, "server=")})
}

// event is one event of go test -json.
type event struct{ Action, Test, Output string }

// fixtureRun is one run of the fixture.
type fixtureRun struct {
	// states has "pass", "fail" or "skip" by subtest, output what the subtests logged.
	states, output map[string]string
	report         report.Report
}

// runFixture runs the fixture in another process.
func runFixture(t *testing.T, words, pattern string) fixtureRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "tool", "test2json", self, "-test.v=test2json", "-test.run="+pattern)
	command.Env = append(os.Environ(), fixtureVariable+"="+words, reportVariable+"="+dir)
	output, err := command.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	got := fixtureRun{states: map[string]string{}, output: map[string]string{}}
	for line := range strings.Lines(string(output)) {
		var one event
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(one.Test, "TestFixture"), "/")
		switch one.Action {
		case "pass", "fail", "skip":
			got.states[name] = one.Action
		case "output":
			got.output[name] += one.Output
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, report.JSONFile)); err == nil {
		if err := json.Unmarshal(data, &got.report); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestSubtests(t *testing.T) {
	got := runFixture(t, "default", "^TestFixture$")
	want := map[string]string{
		"": "fail", "one": "fail", "two": "fail",
		"one/pass": "pass", "one/must-fails": "fail", "one/should-fails": "skip", "one/may-fails": "skip",
		"two/pass": "pass", "two/unsupported": "skip", "two/skipped": "skip", "two/known": "skip",
		"two/error": "fail", "two/inconclusive": "fail",
	}
	if diff := cmp.Diff(want, got.states); diff != "" {
		t.Errorf("states: -want +got\n%s\n%v", diff, got.output)
	}
	for name, parts := range map[string][]string{
		"one/must-fails":   {"actual       code: 403", "rerun        go test -run '^TestFixture$/^one$/^must-fails$'"},
		"one/should-fails": {"does not count for a SHOULD"},
		"two/unsupported":  {"unsupported: needs Kubernetes 1.99"},
		"two/skipped":      {"skipped: ticket 12"},
		"two/known":        {"known to fail: ticket 13"},
		"two/error":        {"unknown problem"},
		"two/inconclusive": {"inconclusive  two.inconclusive"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, part := range parts {
				if !strings.Contains(got.output[name], part) {
					t.Errorf("%s:\n%s\nwant a part %q", name, got.output[name], part)
				}
			}
		})
	}
	if len(got.report.Outcomes) != 10 || got.report.Implementation == nil || got.report.Implementation.Project != "fixture" {
		t.Errorf("report: %d outcomes, implementation %+v", len(got.report.Outcomes), got.report.Implementation)
	}
}

// Only the scenarios that -run selects reach the server.
func TestRunSelects(t *testing.T) {
	for pattern, want := range map[string][]string{
		"^TestFixture$/^one$":               {"one.may-fails", "one.must-fails", "one.pass", "one.should-fails"},
		"^TestFixture$/^one$/^pass$":        {"one.pass"},
		"^TestFixture$/^two$/pass":          {"two.pass"},
		"^TestFixture$/^(one|two)$/^pass$":  nil, // not simple: all reach the server, and two are reported
		"^TestFixture$/^one$/^pass$/deeper": {"one.pass"},
	} {
		t.Run(pattern, func(t *testing.T) {
			got := runFixture(t, "default", pattern)
			var reached []string
			for _, outcome := range got.report.Outcomes {
				reached = append(reached, outcome.Name)
			}
			if want == nil {
				if len(reached) != 10 || !slices.Equal(slices.Sorted(maps.Keys(got.states)), []string{"", "one", "one/pass", "two", "two/pass"}) {
					t.Errorf("reached %q, reported %v", reached, got.states)
				}
				return
			}
			if diff := cmp.Diff(want, reached); diff != "" {
				t.Errorf("reached: -want +got\n%s", diff)
			}
		})
	}
	got := runFixture(t, "default", "^TestFixture$/^none$")
	if got.states[""] != "fail" || !strings.Contains(got.output[""], "selects none of 10 scenarios") {
		t.Errorf("nothing selected: %v\n%s", got.states, got.output[""])
	}
}

func TestStrict(t *testing.T) {
	if got := runFixture(t, "strict", "^TestFixture$/^one$").states; got["one/should-fails"] != "fail" || got["one/may-fails"] != "skip" {
		t.Errorf("states: %v", got)
	}
}

// A server that does not start, or stops, fails the test even if no outcome counts.
func TestIncompleteRun(t *testing.T) {
	for _, words := range []string{"broken", "dies"} {
		t.Run(words, func(t *testing.T) {
			got := runFixture(t, words, "^TestFixture$/^one$/^may-fails$")
			if got.states[""] != "fail" || got.states["one/may-fails"] != "skip" || !strings.Contains(got.output[""], "the run is incomplete") {
				t.Errorf("%v\n%s", got.states, got.output[""])
			}
		})
	}
}

// A suite in which nothing passes fails, although each subtest is skipped. One subtest that
// -run selects can be skipped.
func TestNothingPasses(t *testing.T) {
	got := runFixture(t, "only=two.unsupported,two.skipped", "^TestFixture$")
	if got.states[""] != "fail" || got.states["two/unsupported"] != "skip" || !strings.Contains(got.output[""], "nothing could be judged: 1 unsupported, 1 skipped") {
		t.Errorf("two scenarios: %v\n%s", got.states, got.output[""])
	}
	got = runFixture(t, "only=two.unsupported", "^TestFixture$")
	if got.states[""] != "fail" || !strings.Contains(got.output[""], "nothing could be judged: 1 unsupported") {
		t.Errorf("a suite of one scenario: %v\n%s", got.states, got.output[""])
	}
	got = runFixture(t, "default", "^TestFixture$/^two$/^unsupported$")
	if got.states[""] != "pass" || got.states["two/unsupported"] != "skip" {
		t.Errorf("one of several, by -run: %v\n%s", got.states, got.output[""])
	}
	got = runFixture(t, "only=one.pass,two.pass server=v1.99.0", "^TestFixture$")
	if got.states[""] != "fail" || got.states["one/pass"] != "fail" || !strings.Contains(got.output[""], `the version "v1.99.0"`) {
		t.Errorf("a version that is not plausible: %v\n%s", got.states, got.output[""])
	}
}

// Run can be called several times in one test binary.
func TestRunTwice(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			run(t, Options{Selection: Selection{FS: os.DirFS("testdata/fixture"), Names: []string{"one.pass"}}}, &targettest.Provider{})
		})
	}
}

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{"one.a.b": "a.b", "other.a": "other.a"} {
		t.Run(name, func(t *testing.T) {
			if got := slug(scenario.Scenario{Area: "one", Metadata: scenario.Metadata{Name: name}}); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
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
