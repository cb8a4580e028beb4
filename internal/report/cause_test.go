package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// refused is a failure with a response that the scenario does not expect.
func refused(name, response string, paths ...string) report.Outcome {
	outcome := report.Outcome{Name: name, Verdict: framework.Fail, Evidence: &report.Evidence{Response: response}}
	for _, path := range paths {
		outcome.Evidence.Mismatches = append(outcome.Evidence.Mismatches, report.Mismatch{Path: path})
	}
	return outcome
}

// One cause is one group, whatever else a reason says. What only looks alike is not grouped.
func TestGroups(t *testing.T) {
	const off = "needs feature gate X, which is disabled on the server"
	mistake := report.Outcome{Name: "mistake", Verdict: framework.Errored, Reason: "wrong", Mistake: true}
	known := refused("known", "404 NotFound the server could not find it", "code")
	known.KnownFailing = "yes"
	outcomes := []report.Outcome{
		{Name: "gate1", Verdict: framework.Unsupported, Reason: off},
		{Name: "pods1", Verdict: framework.Unsupported, Reason: "setup: x", NotServed: "v1 Pod"},
		refused("404-1", "404 NotFound the server could not find it", "code"),
		{Name: "pods2", Verdict: framework.Unsupported, Reason: "step 1: y", NotServed: "v1 Pod"},
		{Name: "gate2", Verdict: framework.Unsupported, Reason: off},
		refused("404-2", "404 NotFound the server could not find it", "allowed", "calls"),
		refused("404-3", "404 NotFound the server could not find it", "refusedBy.policy"),
		known,
		refused("calls1", "404 NotFound the server could not find it", "calls"),
		refused("calls2", "404 NotFound the server could not find it", "calls"),
		refused("allowed1", "201", "allowed"),
		refused("allowed2", "201", "allowed"),
		refused("denied1", `403 Forbidden configmaps "a" is forbidden: policy p denied it`, "allowed"),
		refused("denied2", `403 Forbidden pods "b" is forbidden: policy p denied it`, "allowed"),
		refused("denied3", `403 Forbidden pods "b" is forbidden: policy q denied it`, "allowed"),
		mistake, mistake,
		{Name: "lost1", Verdict: framework.Inconclusive, Reason: "setup: step 2 (line 8): create ConfigMap a: no answer\nmore", Evidence: &report.Evidence{Action: "create ConfigMap a"}},
		{Name: "lost2", Verdict: framework.Inconclusive, Reason: "no answer"},
		{Name: "lost3", Verdict: framework.Errored, Reason: "no answer"},
		{Name: "plugin1", Verdict: framework.Inconclusive, Reason: "plugin; a", Cause: "plugin"},
		{Name: "plugin2", Verdict: framework.Inconclusive, Reason: "plugin; b", Cause: "plugin"},
		{Name: "end1", Verdict: framework.Errored, Reason: "not reached", NotReached: true},
		{Name: "end2", Verdict: framework.Errored, Reason: "not reached", NotReached: true},
	}
	var got []string
	for _, group := range report.Groups(outcomes) {
		var names []string
		for _, outcome := range group.Outcomes {
			names = append(names, outcome.Name)
		}
		got = append(got, strings.Join(names, " ")+": "+group.Cause)
	}
	want := []string{
		"gate1 gate2: " + off,
		"pods1 pods2: the API server does not serve v1 Pod",
		"404-1 404-2 404-3: response 404 NotFound the server could not find it",
		"known: response 404 NotFound the server could not find it",
		"calls1: ", "calls2: ", "allowed1: ", "allowed2: ",
		`denied1 denied2: response 403 Forbidden configmaps "a" is forbidden: policy p denied it`,
		`denied3: response 403 Forbidden pods "b" is forbidden: policy q denied it`,
		"mistake mistake: wrong",
		"lost1 lost2: no answer", "lost3: no answer",
		"plugin1 plugin2: plugin",
		"end1: ", "end2: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// A cause that many scenarios have is written once.
func TestOneCauseIsWrittenOnce(t *testing.T) {
	const response = "404 NotFound the server could not find the requested resource"
	r := report.New(framework.TargetInfo{Kind: framework.TargetEnvtest, ServerVersion: "v1.36.3"})
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		outcome := refused(name, response, "code")
		outcome.File, outcome.Line = name+".yaml", 3
		r.Outcomes = append(r.Outcomes, outcome,
			report.Outcome{Name: "u" + name, Verdict: framework.Unsupported, Reason: "needs Kubernetes 1.37, the server is v1.36.3"})
	}
	var short, verbose strings.Builder
	if err := report.WriteConsole(&short, r, report.ConsoleOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteConsole(&verbose, r, report.ConsoleOptions{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text, part string
		want             int
	}{
		{"console", short.String(), "fail  a\n", 1},
		{"console", short.String(), "fail  b\n", 0},
		{"console", short.String(), "7 more with this cause\n", 1},
		{"console", short.String(), "\n               f (f.yaml:3)\n               and 2 others (-v shows all)\n", 1},
		{"console", short.String(), "unsupported\n    8  needs Kubernetes 1.37, the server is v1.36.3\n", 1},
		{"verbose console", verbose.String(), "fail  b\n", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Count(test.text, test.part); got != test.want {
				t.Errorf("%s has %q %d times, want %d:\n%s", test.name, test.part, got, test.want, test.text)
			}
		})
	}
}
