package rule_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// told records how Tell ends a test.
type told struct{ how string }

func (*told) Helper()             {}
func (t *told) Error(args ...any) { t.how += "error" }
func (t *told) Skip(args ...any)  { t.how += "skip" }

// Only a pass passes: what could not be judged is skipped, and a wrong Subject fails.
func TestTell(t *testing.T) {
	want := map[framework.Verdict]string{
		framework.Pass: "", framework.Fail: "error", framework.Errored: "error", framework.Unsupported: "skip", framework.Skipped: "skip", framework.Inconclusive: "skip",
	}
	for _, verdict := range framework.Verdicts() {
		t.Run(string(verdict), func(t *testing.T) {
			var got told
			if rule.Tell(&got, verdict, "text"); got.how != want[verdict] {
				t.Errorf("got %q, want %q", got.how, want[verdict])
			}
		})
	}
}
