package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// maxShare is the share of the plugins that may break a rule of level MUST. A rule that more
// break is of a lower level, or checks something that is not the plugin's fault.
const maxShare = 25 // percent

// share is how many plugins break a rule, of those that keep or break it.
type share struct {
	rule       contract.Rule
	broken, of int
}

func (s share) percent() int { return (100*s.broken + s.of/2) / max(s.of, 1) }

// sharesOf returns the share of each rule, in the order of the rules.
func sharesOf(reports map[string]contract.Report) []share {
	var shares []share
	for _, rule := range contract.Rules() {
		one := share{rule: rule}
		for _, report := range reports {
			for _, outcome := range report.Outcomes {
				if outcome.Rule.ID != rule.ID {
					continue
				}
				switch outcome.Verdict {
				case framework.Pass:
					one.of++
				case framework.Skipped, framework.Fail, framework.Errored:
					one.broken++
					one.of++
				}
			}
		}
		shares = append(shares, one)
	}
	return shares
}

// tooOften returns the rules of level MUST that more than maxShare of the plugins break.
func tooOften(shares []share) []string {
	var wrong []string
	for _, each := range shares {
		if each.rule.Level == framework.Must && 100*each.broken > maxShare*each.of {
			wrong = append(wrong, fmt.Sprintf("%s is broken by %d of %d plugins (%d %%), want at most %d %%: lower its level, or make it say nothing about what is not the plugin's fault",
				each.rule, each.broken, each.of, each.percent(), maxShare))
		}
	}
	return wrong
}

// shareTable is the end of docs/plugins.md: the rules that plugins break most often come first.
func shareTable(shares []share) string {
	sorted := slices.Clone(shares)
	slices.SortStableFunc(sorted, func(a, b share) int { return b.broken*max(a.of, 1) - a.broken*max(b.of, 1) })
	var b strings.Builder
	fmt.Fprintf(&b, "## Share of the plugins that break each rule\n\n"+
		"Of the plugins that the rule concerns and that a request reaches. At most %d %% may break a rule of level MUST.\n\n"+
		"| rule | level | break it | share |\n|---|---|---|---|\n", maxShare)
	for _, each := range sorted {
		fmt.Fprintf(&b, "| %s | %s | %d of %d | %d %% |\n", each.rule, each.rule.Level, each.broken, each.of, each.percent())
	}
	return b.String()
}

// TestTooOften: a MUST may be broken by one plugin in five, and not by more.
func TestTooOften(t *testing.T) {
	must, should := ruleOf(t, framework.Must), ruleOf(t, framework.Should)
	for name, test := range map[string]struct {
		rule   contract.Rule
		waived int
		wrong  bool
	}{
		"one in five":           {must, 2, false},
		"more than one in five": {must, 3, true},
		"only a SHOULD":         {should, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			reports := map[string]contract.Report{}
			for n := range 10 {
				verdict := framework.Pass
				if n < test.waived {
					verdict = framework.Skipped
				}
				reports[fmt.Sprint(n)] = contract.Report{Outcomes: []contract.Outcome{{Rule: test.rule, Verdict: verdict}}}
			}
			reports["not concerned"] = contract.Report{Outcomes: []contract.Outcome{{Rule: test.rule, Verdict: framework.Unsupported}}}
			wrong := tooOften(sharesOf(reports))
			if (len(wrong) == 1 && strings.Contains(wrong[0], test.rule.String())) != test.wrong {
				t.Errorf("got %q, want an error: %t", wrong, test.wrong)
			}
		})
	}
}

// ruleOf returns the first rule of a level.
func ruleOf(t *testing.T, level framework.Level) contract.Rule {
	t.Helper()
	for _, rule := range contract.Rules() {
		if rule.Level == level {
			return rule
		}
	}
	t.Fatalf("no rule has level %s", level)
	return contract.Rule{}
}
