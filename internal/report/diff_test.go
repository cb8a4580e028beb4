package report_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

// compared is a comparison with every sort of change.
func compared() report.Diff {
	before := part("v1.35.4", "pass a.same", "pass a.fails-now", "fail a.passes-now", "pass a.gone", "unsupported b.served-now", "unsupported b.too-old", "unsupported b.too-old-too")
	after := part("v1.36.3", "pass a.same", "fail a.fails-now", "pass a.passes-now", "fail b.known", "pass b.served-now", "error b.new", "pass b.too-old", "pass b.too-old-too")
	for i := range after.Outcomes {
		if after.Outcomes[i].Verdict != framework.Pass {
			after.Outcomes[i].Reason = "the reason\n::error::in lines"
			after.Outcomes[i].Requirement = "A requirement."
		}
	}
	before.Outcomes[4].NotServed = "v1 Pod"
	before.Outcomes[5].Reason = "needs Kubernetes 1.36, the server is v1.35.4"
	before.Outcomes[6].Reason = before.Outcomes[5].Reason
	before.Target.FeatureGates = map[string]bool{"Same": true, "Changed": false, "Removed": true}
	after.Target.FeatureGates = map[string]bool{"Same": true, "Changed": true}
	before.Target.EnabledPlugins = []string{"LimitRanger", "PodSecurity"}
	after.Target.EnabledPlugins = []string{"PodSecurity", "PodTopologyLabels"}
	after.Target.ServedKinds = []string{"v1 Pod"}
	after.Outcomes[3].KnownFailing = "we know"
	after.Environment = &report.Environment{Started: "2026-01-01T00:00:00Z"}
	before.Incomplete = "lost\nthe server"
	diff := report.Compare(before, after)
	diff.Before.File, diff.After.File = "old", "new"
	return diff
}

func TestWriteDiff(t *testing.T) {
	var text, document strings.Builder
	if err := report.WriteDiff(&text, compared()); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "diff.txt"), text.String())
	if err := report.WriteDiffJSON(&document, compared()); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "diff.json"), document.String())
	if err := report.WriteDiff(fullDisk{}, compared()); err == nil {
		t.Error("no error on a full disk")
	}
}

func TestWorse(t *testing.T) {
	for _, test := range []struct {
		before, after string
		level         framework.Level
		known         string
		want          bool
	}{
		{"pass a", "fail a", framework.Must, "", true},
		{"pass a", "fail a", "", "", true},
		{"error a", "fail a", framework.Must, "", true},
		{"pass b", "fail a", framework.Must, "", true},
		{"pass a", "fail a", framework.Should, "", false},
		{"pass a", "fail a", framework.Must, "known", false},
		{"fail a", "fail a", framework.Must, "", false},
		{"fail a", "pass a", framework.Must, "", false},
		{"pass a", "error a", framework.Must, "", false},
		{"pass a", "pass b", framework.Must, "", false},
	} {
		t.Run(test.before+" to "+test.after, func(t *testing.T) {
			after := part("v1.36.3", test.after)
			after.Outcomes[0].Level, after.Outcomes[0].KnownFailing = test.level, test.known
			if got := report.Compare(part("v1.36.3", test.before), after).Worse(); got != test.want {
				t.Errorf("%+v: got %t", test, got)
			}
		})
	}
}
