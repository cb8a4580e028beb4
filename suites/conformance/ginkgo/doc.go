// Package ginkgo runs the conformance suite as a Ginkgo suite:
//
//	import (
//		"github.com/admissiontest/admissiontest/suites/conformance"
//		admission "github.com/admissiontest/admissiontest/suites/conformance/ginkgo"
//	)
//
//	func TestAdmission(t *testing.T) {
//		admission.Run(t, conformance.Options{Config: config})
//	}
//
// Each scenario is one spec, in a container of its area. Its labels are the area, the
// level, the tier and the IDs of the behaviours. Everything that Ginkgo does with specs
// works: --label-filter, --focus, --skip, --dry-run, -p, and its reports.
//
//	go test --ginkgo.label-filter='reinvocation && MUST'
//
// The scenarios that Ginkgo selected run before the first spec, many at the same time, on
// one API server. Each spec then reports the outcome of its scenario, as package
// conformance says, and so takes no time itself.
//
// The package is public for repositories whose test suites are Ginkgo suites.
//
// # Promise
//
// The suite fails if a selected MUST did not pass or was not reached, if nothing was
// selected, and if nothing passed, unless one scenario was selected from several. Only scenarios that Ginkgo selected reach the API server. In a parallel run
// (ginkgo -p) one process runs them, and all processes report.
//
// # Not promised
//
// Ginkgo allows one suite in a test binary, so Run can be called once in it, a second call fails its
// test, and your own RunSpecs cannot be in the same package; conformance.Run can be called
// several times. A repetition within a run (--flake-attempts) reports the
// same outcome again.
package ginkgo
