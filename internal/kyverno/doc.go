// Package kyverno converts the tests of kyverno's CLI, kyverno-test.yaml, to PolicyTests.
//
// Only results for ValidatingAdmissionPolicies and MutatingAdmissionPolicies are converted. What
// is left out is reported.
package kyverno
