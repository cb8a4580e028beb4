package ginkgo

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
	"github.com/onsi/ginkgo/v2/types"

	"github.com/admissiontest/admissiontest/internal/report"
)

// fixtureRun is one run of the fixture.
type fixtureRun struct {
	output string
	failed bool
	// states has the states of the specs that Ginkgo ran, by name.
	states   map[string]string
	messages map[string]string
	labels   map[string][]string
	reasons  []string
	// reached are the scenarios that the engine ran.
	reached []string
}

// runFixture runs the fixture in another process.
func runFixture(t *testing.T, words string, flags ...string) fixtureRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	arguments := append([]string{"-test.run=^TestFixture$", "--ginkgo.no-color", "--ginkgo.json-report=" + filepath.Join(dir, "ginkgo.json")}, flags...)
	command := exec.CommandContext(t.Context(), self, arguments...)
	command.Env = append(os.Environ(), fixtureVariable+"="+words, reportVariable+"="+dir)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	out := fixtureRun{output: string(output), failed: err != nil, states: map[string]string{}, messages: map[string]string{}, labels: map[string][]string{}}
	var reports []types.Report
	read(t, filepath.Join(dir, "ginkgo.json"), &reports, out.output)
	for _, one := range reports {
		out.reasons = append(out.reasons, one.SpecialSuiteFailureReasons...)
		for _, spec := range one.SpecReports {
			name := spec.LeafNodeText
			if spec.LeafNodeType != types.NodeTypeIt {
				if spec.State != types.SpecStatePassed {
					out.states[spec.LeafNodeType.String()] = spec.State.String()
				}
				continue
			}
			if spec.State == types.SpecStateSkipped && spec.Failure.Message == "" {
				continue // filtered by Ginkgo
			}
			out.states[name], out.messages[name], out.labels[name] = spec.State.String(), spec.Failure.Message, spec.Labels()
		}
	}
	if _, err := os.Stat(filepath.Join(dir, report.JSONFile)); err == nil {
		var written report.Report
		read(t, filepath.Join(dir, report.JSONFile), &written, out.output)
		for _, outcome := range written.Outcomes {
			out.reached = append(out.reached, outcome.Name)
		}
	}
	return out
}

func read(t *testing.T, file string, into any, output string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("read %s: %v; output of the fixture:\n%s", filepath.Base(file), err, output)
	}
}

func TestEachVerdictEndsItsSpec(t *testing.T) {
	got := runFixture(t, "default")
	want := map[string]string{
		"one.pass": "passed", "one.must-fails": "failed", "one.should-fails": "skipped", "one.may-fails": "skipped",
		"two.pass": "passed", "two.unsupported": "skipped", "two.skipped": "skipped",
		"two.error": "failed", "two.inconclusive": "failed", "two.known": "skipped",
	}
	if diff := cmp.Diff(want, got.states); diff != "" {
		t.Errorf("states: -want +got\n%s\n%s", diff, got.output)
	}
	if !got.failed {
		t.Error("the suite passed with a MUST that failed")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "must-fails.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(text)), got.messages["one.must-fails"]); diff != "" {
		t.Errorf("failure text: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "SHOULD", "T1", "ORDER-014"}, got.labels["one.should-fails"]); diff != "" {
		t.Errorf("labels: -want +got\n%s", diff)
	}
	if !strings.Contains(got.messages["two.known"], "known to fail: ticket 13") {
		t.Errorf("a skipped spec says %q, want its reason", got.messages["two.known"])
	}
}

func TestStrictCountsShould(t *testing.T) {
	got := runFixture(t, "strict", "--ginkgo.label-filter=SHOULD || MAY")
	want := map[string]string{"one.should-fails": "failed", "one.may-fails": "skipped", "two.pass": "passed"}
	if diff := cmp.Diff(want, got.states); diff != "" || !got.failed {
		t.Errorf("failed %t, states: -want +got\n%s", got.failed, diff)
	}
}

func TestOnlySelectedReachTheServer(t *testing.T) {
	for flag, want := range map[string][]string{
		"--ginkgo.label-filter=one && MUST":                                    {"one.must-fails", "one.pass"},
		"--ginkgo.label-filter=T1":                                             {"one.should-fails"},
		"--ginkgo.label-filter=ORDER-003":                                      {"two.pass"},
		"--ginkgo.focus=one pass|two\\.pass":                                   {"two.pass"},
		"--ginkgo.skip=fails|error|inconclusive|skipped|unsupported|known|one": {"two.pass"},
	} {
		t.Run(flag, func(t *testing.T) {
			got := runFixture(t, "default", flag)
			if diff := cmp.Diff(want, got.reached); diff != "" {
				t.Errorf("reached: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got.states))); diff != "" {
				t.Errorf("specs: -want +got\n%s", diff)
			}
			if wantFail := slices.Contains(want, "one.must-fails"); got.failed != wantFail {
				t.Errorf("failed = %t, want %t\n%s", got.failed, wantFail, got.output)
			}
		})
	}
}

func TestNothingReachesTheServer(t *testing.T) {
	for flag, wantFail := range map[string]bool{"--ginkgo.label-filter=no-such-label": true, "--ginkgo.dry-run": false} {
		if got := runFixture(t, "default", flag); got.failed != wantFail || len(got.reached) > 0 {
			t.Errorf("%s: failed %t, reached %v: want %t, and nothing reached\n%s", flag, got.failed, got.reached, wantFail, got.output)
		}
	}
}

func TestServerDoesNotStart(t *testing.T) {
	for _, words := range []string{"broken", "dies"} {
		t.Run(words, func(t *testing.T) {
			// Even if no outcome counts: the run is incomplete.
			got := runFixture(t, words, "--ginkgo.label-filter=MAY")
			if !got.failed || got.states["AfterSuite"] != "failed" {
				t.Errorf("failed %t, states %v: want AfterSuite to fail\n%s", got.failed, got.states, got.output)
			}
			got = runFixture(t, words, "--ginkgo.focus=one.pass")
			if got.states["one.pass"] != "failed" || !strings.Contains(got.messages["one.pass"], "not reached") {
				t.Errorf("states %v, message %q: want a spec that fails as not reached", got.states, got.messages["one.pass"])
			}
		})
	}
}

// A suite in which nothing passes fails, although each spec is skipped.
func TestNothingPasses(t *testing.T) {
	got := runFixture(t, "only=two.unsupported,two.skipped")
	if !got.failed || got.states["two.unsupported"] != "skipped" || got.states["AfterSuite"] != "failed" || !strings.Contains(got.output, "nothing could be judged: 1 unsupported, 1 skipped") {
		t.Errorf("failed %t, states %v\n%s", got.failed, got.states, got.output)
	}
	got = runFixture(t, "default", "--ginkgo.focus=two.unsupported")
	if got.failed || got.states["two.unsupported"] != "skipped" {
		t.Errorf("one of several: failed %t, states %v\n%s", got.failed, got.states, got.output)
	}
	got = runFixture(t, "only=one.pass,two.pass server=v1.99.0")
	if !got.failed || got.states["one.pass"] != "failed" || !strings.Contains(got.output, `the version "v1.99.0"`) {
		t.Errorf("a version that is not plausible: failed %t, states %v\n%s", got.failed, got.states, got.output)
	}
}

// Ginkgo ends a process that runs a second suite. Run fails the test before and says why.
func TestSecondRunFails(t *testing.T) {
	got := runFixture(t, "default again", "--ginkgo.label-filter=ORDER-003")
	if !got.failed || got.states["two.pass"] != "passed" || !strings.Contains(got.output, "Ginkgo runs one suite in a test binary, and Run was called before") {
		t.Errorf("failed %t, states %v: want the reason of the second call\n%s", got.failed, got.states, got.output)
	}
}
