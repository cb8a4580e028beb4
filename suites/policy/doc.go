// Package policy checks the rules that every ValidatingAdmissionPolicy and MutatingAdmissionPolicy must obey, as a
// user ships them: with their bindings and params. The author gives objects that the policies allow and refuse. The
// package derives the requests that authors forget, and sends them to a kube-apiserver on this machine, without and
// with the policies:
//
//	func TestPolicy(t *testing.T) {
//		policy.Run(t, policy.Subject{
//			Policies: policy.Files("config/policy"),
//			Good:     policy.Files("testdata/good.yaml"),
//			Bad:      []policy.Bad{{Object: policy.Files("testdata/bad.yaml"), Denied: "must have limits"}},
//		})
//	}
//
// A rule has a name and an ID, such as no-evaluation-error and PO-ERR-1; options accept both. [Rules] has all rules.
//
// The package is public for the tests of policies.
//
// # Promise
//
// Only requests that the API server accepts without the policies are judged, so no rule fails because validation,
// authorization or another plugin refuses. A rule that no such request is about is inconclusive. The requests of one
// Subject are always the same.
//
// # Not promised
//
// A pass proves nothing about requests that are not derived from the samples. What is read is found in the expressions, also
// through variables and macros; what an expression computes is not. The package does not measure which parts of a policy the
// samples decide.
package policy
