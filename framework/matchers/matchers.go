package matchers

import (
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeAdmitted matches a request that was admitted.
func BeAdmitted() types.GomegaMatcher {
	return &matcher{expected: "be admitted", match: func(r result) (bool, error) { return r.Allowed(), nil }}
}

// BeRejected matches a request that was refused with this reason in the Status that a client gets.
// The methods of the RejectMatcher add conditions.
func BeRejected(reason metav1.StatusReason) *RejectMatcher {
	return &RejectMatcher{reason: reason}
}

// HaveMutatedOnly matches if the plugin changed something at or below each of these paths, and
// nothing else in the object. Write paths as harness.Result.Changes returns them:
// "spec.tolerations[0]", "metadata.labels[team]".
func HaveMutatedOnly(paths ...string) types.GomegaMatcher { return mutatedOnly(paths) }

// HaveMutatedNothing matches if the plugin did not change the object.
func HaveMutatedNothing() types.GomegaMatcher { return mutatedNothing() }

// HaveMadeNoCalls matches if the plugin made no calls with the clients of the World.
func HaveMadeNoCalls() types.GomegaMatcher { return madeNoCalls() }

// HaveWritten matches if the plugin made a call with this verb and resource that writes, such as
// "create" and "namespaces". "*" matches every verb or resource. Reads, dry runs and reviews do not
// count.
func HaveWritten(verb, resource string) types.GomegaMatcher { return written(verb, resource) }

// HaveAuditAnnotation matches if the audit event has an annotation with this key and value. The
// value is a string or a gomega matcher.
func HaveAuditAnnotation(key string, value any) types.GomegaMatcher {
	return auditAnnotation(key, value)
}

// HaveWarning matches if at least one warning equals the text. The text is a string or a gomega
// matcher.
func HaveWarning(text any) types.GomegaMatcher { return warning(text) }

// BeIdempotent calls Admit again with the mutated object, as in a reinvocation. It matches if that
// call admits the object, changes nothing and sets the same audit annotations. See
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#idempotence
func BeIdempotent() types.GomegaMatcher { return idempotent() }
