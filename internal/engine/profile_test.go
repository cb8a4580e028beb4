package engine_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

func whole(t *testing.T) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every requirement of the catalogue is in a profile, and every pattern of a profile matches some.
func TestEveryRequirementIsInAProfile(t *testing.T) {
	all := whole(t)
	in := map[string]bool{}
	for _, p := range engine.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			selected, err := p.Of(all)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range selected {
				in[s.Metadata.Name] = true
			}
			before, err := engine.Select(all, p.Selects, engine.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, pattern := range p.Except {
				if !slices.ContainsFunc(before, func(s scenario.Scenario) bool {
					matches, err := path.Match(pattern, s.Metadata.Name)
					return matches || err != nil
				}) {
					t.Errorf("except %q leaves nothing out", pattern)
				}
			}
		})
	}
	for _, s := range all {
		if !in[s.Metadata.Name] {
			t.Errorf("%s is in no profile", s.Metadata.Name)
		}
	}
}

// docs/conformance.md lists the profiles.
func TestDocumentation(t *testing.T) {
	text := "| profile | an API server can claim it if |\n|---|---|\n"
	for _, p := range engine.Profiles() {
		text += fmt.Sprintf("| `%s` | %s |\n", p.Name, p.About)
	}
	document, err := os.ReadFile("../../docs/conformance.md")
	if err != nil || !strings.Contains(string(document), text) {
		t.Errorf("docs/conformance.md, %v: want in it:\n%s", err, text)
	}
}

// The newest minor is that of the default server.
func TestNewestMinors(t *testing.T) {
	if newest := engine.NewestMinors()[0]; !strings.HasPrefix(binaries.DefaultVersion, newest+".") {
		t.Errorf("newest minor %s, the default server is %s", newest, binaries.DefaultVersion)
	}
}

func TestUnknownProfile(t *testing.T) {
	if _, err := engine.ProfileNamed("webhook"); err == nil || !strings.Contains(err.Error(), `did you mean "webhooks"?`) {
		t.Errorf("Named: %v", err)
	}
}

// Three requirements of area aggregated, and what can be said about a server by their outcomes.
func TestJudge(t *testing.T) {
	made := func(name string, level framework.Level, since string) scenario.Scenario {
		return scenario.Scenario{Metadata: scenario.Metadata{Name: "aggregated." + name}, Area: "aggregated", Spec: scenario.Spec{Level: level, Since: since, Requirement: name}}
	}
	all := []scenario.Scenario{made("must", framework.Must, ""), made("should", framework.Should, ""), made("newer", framework.Must, "1.37")}
	for name, test := range map[string]struct {
		server   string
		outcomes string // name=verdict
		want     report.Claim
	}{
		"all pass":                   {"v1.37.2", "must=pass should=pass newer=pass", report.Claim{Kubernetes: "1.37", Verdict: report.Conformant, Requirements: 3, Passed: 3}},
		"a SHOULD fails":             {"v1.37.2", "must=pass should=fail newer=pass", report.Claim{Kubernetes: "1.37", Verdict: report.Conformant, Requirements: 3, Passed: 2, NotMet: []string{"aggregated.should"}}},
		"no MUST, a SHOULD fails":    {"v1.37.2", "should=fail", report.Claim{Kubernetes: "1.37", Verdict: report.NotConformant, Requirements: 1, Failed: []string{"aggregated.should"}, Missing: []string{"nothing passed"}}},
		"a MUST fails":               {"v1.37.2", "must=fail should=pass", report.Claim{Kubernetes: "1.37", Verdict: report.NotConformant, Requirements: 3, Passed: 1, Failed: []string{"aggregated.must"}, Missing: []string{"1 not run"}}},
		"an older minor":             {"v1.36.3", "must=pass should=pass newer=unsupported", report.Claim{Kubernetes: "1.36", Verdict: report.Conformant, Requirements: 2, Passed: 2}},
		"too old":                    {"v1.35.4", "must=pass should=pass", report.Claim{Kubernetes: "1.35", Verdict: report.Partial, Requirements: 2, Passed: 2, Missing: []string{"older than Kubernetes 1.36"}}},
		"skipped":                    {"v1.37.2", "must=pass should=skipped newer=pass", report.Claim{Kubernetes: "1.37", Verdict: report.Partial, Requirements: 3, Passed: 2, Missing: []string{"1 skipped"}}},
		"inconclusive and error":     {"v1.37.2", "must=inconclusive should=error newer=pass", report.Claim{Kubernetes: "1.37", Verdict: report.Partial, Requirements: 3, Passed: 1, Missing: []string{"1 error", "1 inconclusive"}}},
		"unsupported":                {"v1.37.2", "must=unsupported should=pass newer=pass", report.Claim{Kubernetes: "1.37", Verdict: report.Partial, Requirements: 3, Passed: 2, Missing: []string{"1 unsupported"}}},
		"unsupported SHOULD":         {"v1.37.2", "must=pass should=unsupported newer=pass", report.Claim{Kubernetes: "1.37", Verdict: report.Conformant, Requirements: 3, Passed: 2, NotMet: []string{"aggregated.should"}}},
		"nothing":                    {"v1.37.2", "", report.Claim{Kubernetes: "1.37", Verdict: report.Partial, Requirements: 3, Missing: []string{"3 not run", "nothing passed"}}},
		"the version is implausible": {"v1.99.0", "must=pass should=pass newer=pass", report.Claim{Verdict: report.Partial, Missing: []string{report.ImplausibleVersion("v1.99.0")}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := report.New(framework.TargetInfo{Kind: framework.TargetEnvtest, ServerVersion: test.server})
			for _, one := range strings.Fields(test.outcomes) {
				name, verdict, _ := strings.Cut(one, "=")
				i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Metadata.Name == "aggregated."+name })
				r.Outcomes = append(r.Outcomes, report.Outcome{Name: all[i].Metadata.Name, Level: all[i].Spec.Level, Requirement: name, Verdict: framework.Verdict(verdict)})
			}
			all := all
			if strings.HasPrefix(name, "no MUST") {
				all = all[1:2]
			}
			p, err := engine.ProfileNamed("aggregated")
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Judge(r, all)
			test.want.Profile = "aggregated"
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Fatalf("claim (-want +got), %v:\n%s", err, diff)
			}
			r.Claim = &got
			if problems, err := engine.Verify(r, all); len(problems) > 0 || err != nil {
				t.Errorf("Verify: %q, %v", problems, err)
			}
			better := got
			better.Passed++
			r.Claim = &better
			if problems, _ := engine.Verify(r, all); len(problems) != 1 || !strings.HasPrefix(problems[0], "claim: ") {
				t.Errorf("Verify of a claim that does not follow: %q", problems)
			}
		})
	}
}

// Outcomes that are not of the catalogue.
func TestVerify(t *testing.T) {
	all := whole(t)
	first := all[0]
	for name, test := range map[string]struct {
		outcome report.Outcome
		want    string
	}{
		"unknown":             {report.Outcome{Name: "order.new"}, `no requirement "order.new"`},
		"another level":       {report.Outcome{Name: first.Metadata.Name, Level: framework.May, Requirement: first.Spec.Requirement}, "has the level MAY"},
		"another sentence":    {report.Outcome{Name: first.Metadata.Name, Level: first.Spec.Level, Requirement: "It works."}, "not about the same requirement"},
		"as in the catalogue": {report.Outcome{Name: first.Metadata.Name, Level: first.Spec.Level, Requirement: first.Spec.Requirement}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := engine.Verify(report.Report{Outcomes: []report.Outcome{test.outcome}}, all)
			if err != nil || (len(problems) > 0) != (test.want != "") || !strings.Contains(strings.Join(problems, "\n"), test.want) {
				t.Errorf("Verify = %q, %v; want %q", problems, err, test.want)
			}
		})
	}
	unknown := report.Report{Claim: &report.Claim{Profile: "webhook"}}
	if problems, err := engine.Verify(unknown, all); err != nil || len(problems) != 1 {
		t.Errorf("a claim to an unknown profile: %q, %v", problems, err)
	}
}
