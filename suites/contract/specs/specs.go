// Package specs runs the contract suite under Ginkgo, with one spec for each rule.
//
//	var _ = specs.Describe("my plugin", contract.Subject{
//		Source: harness.FromRegister(PluginName, Register),
//		Allow:  []framework.Request{framework.Create(pod)},
//		Reject: []framework.Request{framework.Create(badPod)},
//	})
//
// The package is public for plugins whose test suites are Ginkgo suites.
//
// # Promise
//
// Each spec has the label "contract" and, as labels, the ID, the name and the level of its rule
// ("A1", "admit-is-idempotent", "MUST"), for --label-filter. A spec fails if the plugin breaks the
// rule, with the same text as contract.Run. It is skipped if the rule is waived, does not apply to
// the plugin, or is not reached by any request. No plugin is built before the specs run.
//
// # Not promised
//
// The text of a spec may change.
package specs

import (
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// Describe adds a container with one spec for each rule that contract.Run would check, and one spec
// that fails if the Subject or the options are wrong. It always returns true, so that you can call
// it in a package variable: var _ = specs.Describe(...).
func Describe(text string, subject contract.Subject, options ...contract.Option) bool {
	if subject.Name == "" {
		subject.Name = text
	}
	plan, here := contract.NewPlan(subject, options...), types.NewCodeLocation(1)
	return ginkgo.Describe(text, here, ginkgo.Label("contract"), func() {
		ginkgo.It("has a correct Subject and options", here, func() {
			if misuse := plan.Misuse(); len(misuse) > 0 {
				ginkgo.Fail(strings.Join(misuse, "\n"))
			}
		})
		for _, rule := range plan.Rules() {
			labels := ginkgo.Label(rule.ID, rule.Name, string(rule.Level))
			ginkgo.It(rule.String()+": "+rule.Title, here, labels, func() {
				report(plan.Check(rule), subject.Name)
			})
		}
	})
}

// report passes, fails or skips the current spec.
func report(outcome contract.Outcome, subject string) {
	ginkgo.GinkgoHelper()
	switch outcome.Verdict {
	case framework.Pass:
	case framework.Fail, framework.Errored:
		ginkgo.Fail(outcome.Text(subject))
	default:
		ginkgo.Skip(outcome.Text(subject))
	}
}
