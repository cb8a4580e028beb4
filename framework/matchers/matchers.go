package matchers

import (
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeAdmitted matches a request that was admitted.
func BeAdmitted() types.GomegaMatcher {
	return &matcher{expected: "be admitted", match: func(r result) (bool, error) { return r.Allowed(), nil }}
}

// BeRejected matches a request that was refused with this reason, as a client sees it. Methods of
// the RejectMatcher add conditions.
func BeRejected(reason metav1.StatusReason) *RejectMatcher {
	return &RejectMatcher{reason: reason}
}

// HaveMutatedOnly matches if each of these paths, or a path below it, was changed and nothing else
// in the object was. Paths are those of harness.Result.Changes: "spec.tolerations[0]",
// "metadata.labels[team]".
func HaveMutatedOnly(paths ...string) types.GomegaMatcher { return mutatedOnly(paths) }

// HaveMutatedNothing matches if the plugin did not change the object.
func HaveMutatedNothing() types.GomegaMatcher { return mutatedNothing() }

// HaveMadeNoCalls matches if the World's clients made no call.
func HaveMadeNoCalls() types.GomegaMatcher { return madeNoCalls() }

// HaveWritten matches if a client of the World made a call that writes, with this verb and
// resource, such as "create" and "namespaces". "*" matches every verb or resource.
func HaveWritten(verb, resource string) types.GomegaMatcher { return written(verb, resource) }

// HaveAuditAnnotation matches if the audit event has this annotation. Value is a string or a
// gomega matcher.
func HaveAuditAnnotation(key string, value any) types.GomegaMatcher {
	return auditAnnotation(key, value)
}

// HaveWarning matches if one of the warnings equals text, or is matched by it. Text is a string or
// a gomega matcher.
func HaveWarning(text any) types.GomegaMatcher { return warning(text) }

// BeIdempotent matches if a second Admit on the mutated object admits it, changes nothing and sets
// the same audit annotations, as in a reinvocation.
// See https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#idempotence
func BeIdempotent() types.GomegaMatcher { return idempotent() }
