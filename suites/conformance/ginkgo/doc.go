// Package ginkgo runs the conformance suite as a Ginkgo suite:
//
//	import (
//		"github.com/admissiontest/admissiontest/suites/conformance"
//		admission "github.com/admissiontest/admissiontest/suites/conformance/ginkgo"
//	)
//
//	func TestAdmission(t *testing.T) {
//		admission.Run(t, conformance.Options{Target: conformance.Target{Config: config}})
//	}
//
// Each scenario is one spec, in a container for its area. The labels of a spec are the area, the
// level, the tier and the IDs of the behaviours. Ginkgo's flags and reports work as for any suite:
// --label-filter, --focus, --skip, --dry-run, -p.
//
//	go test --ginkgo.label-filter='reinvocation && MUST'
//
// All scenarios that Ginkgo selected run on one API server before the first spec, many of them at
// the same time. Each spec then only reports the outcome of its scenario, by the rules of package
// conformance, so Ginkgo shows almost no time for a spec.
//
// The package is public for repositories whose test suites are Ginkgo suites.
//
// # Promise
//
// The suite fails if a selected MUST did not pass or was not reached, if nothing was selected, and
// if nothing passed, unless a single scenario was selected from several. Only scenarios that Ginkgo
// selected run on the API server. In a parallel run (ginkgo -p) one process runs the scenarios, and
// all processes report outcomes.
//
// # Not promised
//
// Ginkgo allows only one suite in a test binary. So a second call of Run fails its test, and the
// package cannot have your own RunSpecs. conformance.Run does not have this limit. If Ginkgo
// repeats a spec (--flake-attempts), the spec reports the same outcome again.
package ginkgo
