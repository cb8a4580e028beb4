// Package conformance runs scenarios in go test. The scenarios are the catalogue of this module, to
// test an API server, or your own scenarios, to test your webhooks and policies.
//
//	func TestAdmission(t *testing.T) {
//		conformance.Run(t, conformance.Options{Target: conformance.Target{Config: config}})
//	}
//
// Each scenario is one subtest, below the subtest of its area:
//
//	go test -run 'TestAdmission/reinvocation'
//	go test -run 'TestAdmission/reinvocation/never.called-once'
//
// First, all scenarios that -run selects run on one API server, many of them at the same time. Then
// each subtest only reports the outcome of its scenario, so go test shows almost no time for a
// subtest. The report has the duration of each scenario.
//
// Package suites/conformance/ginkgo does the same as a Ginkgo suite.
//
// # Outcomes
//
//	pass                           the subtest passes
//	fail, error, inconclusive      the subtest fails, if the level counts
//	fail, error, inconclusive      the subtest is skipped with the evidence, if it does not
//	fail, known to fail            the subtest is skipped with the evidence
//	unsupported, skipped           the subtest is skipped with the reason
//
// The level MUST always counts, SHOULD counts with [Report.Strict], and MAY never counts. These
// are also the rules of the command admissiontest.
//
// The package is public for repositories that test a webhook, a policy or an API server together
// with their other Go tests.
//
// # Promise
//
// The test fails if a selected MUST did not pass or was not reached, if nothing was
// selected, and if nothing passed: a suite whose scenarios are all skipped is not a
// success. One scenario that -run selects from several can be skipped. Run can be called
// several times in one test binary. Logs and reports do not show the data of Secrets,
// tokens and extra fields of users.
//
// # Not promised
//
// With -count, all selected scenarios run again for each repetition.
package conformance
