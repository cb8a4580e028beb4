// Package specs runs the contract suite under Ginkgo: a spec for each property.
//
//	var _ = specs.Describe("my plugin", contract.Subject{
//		Source: harness.FromRegister(PluginName, Register),
//		Allow:  []framework.Request{framework.Create(pod)},
//		Reject: []framework.Request{framework.Create(badPod)},
//	})
//
// # Promise
//
// Specs have the labels "contract", the ID of their property ("A1") and its level
// ("MUST"), for --label-filter. A property that is broken fails its spec with all that
// contract.Run would say; one that does not concern the plugin, that no request
// reaches, or that is waived, skips it. No plugin is built before specs run.
//
// # Not promised
//
// What a spec says is for people: its wording changes.
package specs

import (
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// Describe adds a container with a spec for each property that contract.Run would run,
// and one that fails for what is wrong with the Subject or the options. It returns
// true, so that it can stand beside a package's variables.
func Describe(text string, subject contract.Subject, options ...contract.Option) bool {
	if subject.Name == "" {
		subject.Name = text
	}
	plan, here := contract.NewPlan(subject, options...), types.NewCodeLocation(1)
	return ginkgo.Describe(text, here, ginkgo.Label("contract"), func() {
		ginkgo.It("can be put to the properties", here, func() {
			if wrong := plan.Misuse(); len(wrong) > 0 {
				ginkgo.Fail(strings.Join(wrong, "\n"))
			}
		})
		for _, property := range plan.Properties() {
			labels := ginkgo.Label(string(property.ID), string(property.Level))
			ginkgo.It(string(property.ID)+": "+property.Title, here, labels, func() {
				report(plan.Judge(property), plan.Subject().Name)
			})
		}
	})
}

// report tells Ginkgo what came of a property.
func report(outcome contract.Outcome, subject string) {
	ginkgo.GinkgoHelper()
	switch outcome.Verdict {
	case framework.Pass:
	case framework.Fail:
		ginkgo.Fail(outcome.Text(subject))
	default:
		ginkgo.Skip(outcome.Text(subject))
	}
}
