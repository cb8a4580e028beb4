package reference

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

var (
	repetitions = flag.Int("repetitions", 5, "how often TestVerdictsRepeat checks each plugin")
	everyPlugin = flag.Bool("every-plugin", false, "TestVerdictsRepeat checks every plugin, not only some: 50 repetitions take some three hours, half of them for ServiceAccount")
)

// TestVerdictsRepeat: each check of a plugin has the same verdicts. LimitRanger and EventRateLimit
// have messages in random order or of the clock, and the others are of different kinds.
func TestVerdictsRepeat(t *testing.T) {
	names := []string{"LimitRanger", "EventRateLimit", "DefaultTolerationSeconds", "CertificateSigning", "PodNodeSelector"}
	if *everyPlugin {
		names = slices.Sorted(maps.Keys(entries()))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			entry := entries()[name]()
			entry.subject.Name = name
			if entry.start != nil {
				entry.start(t, &entry.subject)
			}
			var reports []contract.Report
			for range *repetitions {
				reports = append(reports, contract.Check(entry.subject, contract.Budget(time.Minute)))
			}
			for _, varies := range varying(reports) {
				t.Error(varies)
			}
		})
	}
}

// varying returns the rules whose verdict is not the same in all reports, with the first report
// that has another.
func varying(reports []contract.Report) []string {
	var found []string
	for i, first := range reports[0].Outcomes {
		for n, report := range reports {
			if other := report.Outcomes[i]; other.Verdict != first.Verdict {
				found = append(found, fmt.Sprintf("%s: got first %q (%s), and %q in report %d of %d (%s); want always the same",
					first.Rule, first.Verdict, first.Reason, other.Verdict, n+1, len(reports), other.Reason))
				break
			}
		}
	}
	return found
}

// TestVarying: one other verdict is found.
func TestVarying(t *testing.T) {
	rule := contract.Rules()[0]
	reportOf := func(verdict framework.Verdict) contract.Report {
		return contract.Report{Outcomes: []contract.Outcome{{Rule: rule, Verdict: verdict}}}
	}
	same := []contract.Report{reportOf(framework.Pass), reportOf(framework.Pass), reportOf(framework.Pass)}
	if got := varying(same); len(got) > 0 {
		t.Errorf("got %q, want none", got)
	}
	same[1] = reportOf(framework.Inconclusive)
	if got := varying(same); len(got) != 1 {
		t.Errorf("got %q, want one", got)
	}
}
