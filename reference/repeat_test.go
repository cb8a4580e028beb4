package reference

import (
	"flag"
	"fmt"
	"testing"
	"time"

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
		names = plugins()
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			entry := entryOf(t, name)
			entry.subject.Name = name
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
