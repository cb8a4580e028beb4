package cli

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
)

// A known failure does not fail the run; a listed scenario that passes does.
func TestKnownFailing(t *testing.T) {
	for name, test := range map[string]struct {
		object, list string
		code         int
		verdict      framework.Verdict
	}{
		"fails as known":        {"refused", "mine.s: ticket 1", exitPass, framework.Fail},
		"passes all the same":   {"fine", "mine.s: ticket 1", exitFail, framework.Fail},
		"pattern":               {"refused", "mine.*: ticket 1", exitPass, framework.Fail},
		"empty list":            {"refused", "# nothing yet", exitFail, framework.Fail},
		"an error stays":        {"broken", "mine.s: ticket 1", exitInfrastructure, framework.Errored},
		"inconclusive, as well": {"undecided", "mine.s: ticket 1", exitInconclusive, framework.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"s.yaml": scenarioFile("mine.s", "MUST", test.object), "known": test.list})
			got := execute(t.Context(), &fake{}, "run", filepath.Join(dir, "s.yaml"), "--known-failing", filepath.Join(dir, "known"), "--report", dir+"/out", "-o", "json")
			got.check(t, test.code)
			if outcome := checkReport(t, got, dir+"/out").Outcomes[0]; outcome.Verdict != test.verdict || (outcome.KnownFailing != "") != (test.code == exitPass) {
				t.Errorf("got %+v", outcome)
			}
		})
	}
}

func TestImplementation(t *testing.T) {
	dir := write(t, map[string]string{"s.yaml": scenarioFile("mine.s", "MUST", "fine")})
	got := execute(t.Context(), &fake{}, "run", dir, "-o", "json", "--report", dir+"/out",
		"--implementation", "organization=Acme Inc,project=api,version=1.2", "--implementation", "url=https://example.com,contact=a@example.com,contact=#chat")
	got.check(t, exitPass)
	want := &framework.Implementation{Organization: "Acme Inc", Project: "api", Version: "1.2", URL: "https://example.com", Contact: []string{"a@example.com", "#chat"}}
	if diff := cmp.Diff(want, checkReport(t, got, dir+"/out").Implementation); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
