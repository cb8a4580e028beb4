// Package conformance runs scenarios in go test: the catalogue of this module on an API
// server or a distribution, or your own scenarios for your webhooks and policies.
//
//	func TestAdmission(t *testing.T) {
//		conformance.Run(t, conformance.Options{Config: config})
//	}
//
// Each scenario is one subtest, below the subtest of its area:
//
//	go test -run 'TestAdmission/reinvocation'
//	go test -run 'TestAdmission/reinvocation/never.called-once'
//
// The scenarios that -run selects run first, many at the same time, on one API server.
// Then each subtest reports the outcome of its scenario, and so takes no time itself. The
// duration of a scenario is in the report.
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
// A MUST always counts, a SHOULD counts with [Options.Strict], and a MAY never counts, as
// with the command.
//
// The package is public for repositories that test a webhook, a policy or an API server in
// go test, beside their other tests.
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
// A subtest that is repeated with -count runs all scenarios again.
package conformance
