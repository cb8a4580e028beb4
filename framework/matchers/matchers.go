package matchers

import (
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeAdmitted succeeds for a request that was carried out.
func BeAdmitted() types.GomegaMatcher {
	return &matcher{expected: "be admitted", match: func(r result) (bool, error) { return r.Allowed(), nil }}
}

// BeRejected succeeds for a request that was refused with this reason, as a client sees
// it. Its methods narrow what is accepted.
func BeRejected(reason metav1.StatusReason) *RejectMatcher {
	return &RejectMatcher{reason: reason}
}

// HaveMutatedOnly succeeds where each of these paths was changed, or something beneath
// it, and nothing else in the object was. Paths are those of harness.Result.Changes:
// "spec.tolerations[0]", "metadata.labels[team]".
func HaveMutatedOnly(paths ...string) types.GomegaMatcher { return mutatedOnly(paths) }

// HaveMutatedNothing succeeds where the object is as it was sent.
func HaveMutatedNothing() types.GomegaMatcher { return mutatedNothing() }

// HaveMadeNoCalls succeeds where the plugin called nothing by the World's clients.
func HaveMadeNoCalls() types.GomegaMatcher { return madeNoCalls() }

// HaveWritten succeeds where the plugin made a call of this verb and resource that
// changes what is stored: "create", "namespaces". "*" is every one.
func HaveWritten(verb, resource string) types.GomegaMatcher { return written(verb, resource) }

// HaveAuditAnnotation succeeds where the audit event has this annotation. Value is a
// string or a matcher.
func HaveAuditAnnotation(key string, value any) types.GomegaMatcher {
	return auditAnnotation(key, value)
}

// HaveWarning succeeds where one of the warnings is the text, or is what the matcher
// accepts. Text is a string or a matcher.
func HaveWarning(text any) types.GomegaMatcher { return warning(text) }

// BeIdempotent succeeds where Admit, run again on the object that came of it, admits it,
// changes nothing and annotates the same: what a reinvocation must find.
// See https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#idempotence
func BeIdempotent() types.GomegaMatcher { return idempotent() }
