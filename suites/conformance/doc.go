// Package conformance is the catalogue as a Ginkgo suite, for a repository that
// builds an API server or a distribution:
//
//	func TestAdmission(t *testing.T) {
//		conformance.Run(t, conformance.Options{Config: config})
//	}
//
// Each scenario is one spec, in a container of its area, with the labels that
// [Labels] returns: area, level, tier and behaviours. Everything that Ginkgo can
// do with specs works: --label-filter, --focus, --skip, --dry-run, -p, and its
// reports.
//
//	go test ./suites/conformance --ginkgo.label-filter='reinvocation && MUST'
//
// The engine runs the scenarios that Ginkgo selected before the first spec, many
// at the same time, on one API server. Each spec then tells the outcome of its own
// scenario, and so takes no time itself: how long a scenario took is in its report
// entry.
//
// # What an outcome makes of a spec
//
//	pass                           passed
//	fail, error, inconclusive      failed, when the level counts
//	fail, error, inconclusive      skipped with the evidence, when it does not
//	unsupported, skipped           skipped with the reason
//
// A MUST always counts, a SHOULD with [Options.Strict], a MAY never. That is how
// the command counts, too.
//
// # Promise
//
// The suite fails when a selected MUST did not pass or was not reached, and also
// when nothing was selected. Only scenarios that Ginkgo selected reach the API
// server. In a parallel run (ginkgo -p) one process runs them, and all tell.
//
// # Not promised
//
// Ginkgo allows one suite in a test binary, so Run can be called once in one. A
// repetition within a run (--flake-attempts) tells the same outcome again.
package conformance
