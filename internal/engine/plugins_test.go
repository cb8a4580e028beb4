package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// A scenario whose plugin is off is unsupported. If that is not known, it runs, and a
// failure is inconclusive.
func TestNeededPlugins(t *testing.T) {
	t.Parallel()
	unknown := errors.New("the metrics cannot be read")
	for name, one := range map[string]struct {
		needs       []string
		known       plugins
		unsupported bool
		onFailure   framework.Verdict
	}{
		"on":              {[]string{"plugin/Priority"}, plugins{enabled: []string{"Priority"}}, false, framework.Fail},
		"off":             {[]string{"plugin/Priority"}, plugins{enabled: []string{"LimitRanger"}}, true, ""},
		"one of two off":  {[]string{"plugin/LimitRanger", "plugin/Priority"}, plugins{enabled: []string{"LimitRanger"}}, true, ""},
		"not known":       {[]string{"plugin/Priority"}, plugins{unknown: unknown}, false, framework.Inconclusive},
		"on, as far":      {[]string{"plugin/Priority"}, plugins{enabled: []string{"Priority"}, unknown: unknown}, false, framework.Fail},
		"none needed":     {nil, plugins{unknown: unknown}, false, framework.Fail},
		"only capability": {[]string{framework.CapabilityAudit}, plugins{}, false, framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{Spec: scenario.Spec{Needs: one.needs}}
			reason := one.known.missing(s)
			if (reason != "") != one.unsupported || one.unsupported && !strings.Contains(reason, "Priority") {
				t.Errorf("got reason %q; want one: %t", reason, one.unsupported)
			}
			if one.unsupported {
				return
			}
			if got := one.known.judge(s, report.Outcome{Verdict: framework.Fail}); got.Verdict != one.onFailure {
				t.Errorf("got %s %q for a failure; want %s", got.Verdict, got.Reason, one.onFailure)
			}
			if got := one.known.judge(s, report.Outcome{Verdict: framework.Pass}); got.Verdict != framework.Pass {
				t.Errorf("got %s for a pass; want it to stay", got.Verdict)
			}
		})
	}
}
