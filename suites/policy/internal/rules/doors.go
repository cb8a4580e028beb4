package rules

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
)

func doors() []Definition {
	return []Definition{{
		ID: "PO-DOOR-1", Name: "update-into-violation", Level: framework.Must,
		Title:  "What the creation refuses, an update refuses.",
		Why:    "Anyone creates a good object, and then makes it bad.",
		Fix:    "operations: [CREATE, UPDATE]",
		Source: []string{"https://github.com/cozystack/cozystack/issues/2470"},
		Check: func(t *T) {
			t.needBad()
			t.must(slices.ContainsFunc(t.Bad, func(b Bad) bool { return b.Fix != nil && b.Old == nil }), "no bad object is created: the bad requests are updates")
			invalid := t.invalid(Violations)
			t.must(invalid == "", "the API server itself refuses each update that makes a good object bad: %s", invalid)
			t.refused(Violations)
		},
	}, {
		ID: "PO-DOOR-2", Name: "sibling-lists", Level: framework.Must,
		Title:  "A bad element of a list is refused in each other list with such elements.",
		Why:    "A bad init container does the same harm as a bad container.",
		Fix:    "One variable with all lists: object.spec.containers + object.spec.?initContainers.orValue([]) + …",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/138065", "https://github.com/kubescape/cel-admission-library/issues/82"},
		Check: func(t *T) {
			t.mustCarry(Siblings, "no defect is in an element of a list beside which another list has such elements")
			t.refused(Siblings)
		},
	}, {
		ID: "PO-DOOR-3", Name: "subresources", Level: framework.Must,
		Title:  "A defect that can be written through a subresource is refused there.",
		Why:    "A rule for a resource does not include its subresources: kubectl scale and kubectl debug write them.",
		Fix:    "resources: [deployments, deployments/scale]. The object of scale is a Scale. A rule for status also refuses what controllers write: if only they may write it, waive the rule.",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/1837", "https://github.com/kyverno/kyverno/issues/3118"},
		Check: func(t *T) {
			t.mustCarry(Subwrites, "no subresource can carry a defect")
			t.refused(Subwrites)
		},
	}, {
		ID: "PO-DOOR-6", Name: "names", Level: framework.Must,
		Title:  "generateName changes no verdict.",
		Why:    "Objects of controllers have no name when policies see them.",
		Fix:    "Judge something else than the name.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/76680"},
		Check: func(t *T) {
			t.must(t.sent(Generated), "no sample with a name is created")
			refusal := t.invalid(Generated)
			t.must(refusal == "", "the API server itself refuses generateName: %s", refusal)
			t.refused(Generated)
			t.accepted(Generated)
		},
	}}
}

// exemptions are the rules about how a requester turns a policy off.
func exemptions() []Definition {
	return []Definition{{
		ID: "PO-DOOR-5", Name: "every-version", Level: framework.Must,
		Title:  "A bad object is refused in each served version of its kind.",
		Why:    "With matchPolicy Exact, or an expression about apiVersion, clients of another version are not checked.",
		Fix:    "matchPolicy: Equivalent, which is the default.",
		Source: []string{"https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/"},
		Check: func(t *T) {
			t.needBad()
			t.mustHave(Versions)
			t.refused(Versions)
		},
	}, {
		ID: "PO-DOOR-7", Name: "no-self-exemption", Level: framework.Must,
		Title:  "The author of a bad object cannot turn the policy off with a label or annotation of the object.",
		Why:    "Whoever writes the object writes its labels, and reads in the policy which one exempts it.",
		Fix:    "A namespaceSelector with kubernetes.io/metadata.name, or an authorizer check. If another policy guards the key, waive the rule with its name.",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/697", "https://github.com/open-policy-agent/gatekeeper-library/issues/159"},
		Check: func(t *T) {
			t.must(slices.ContainsFunc(t.Bad, func(b Bad) bool { return !b.Deleted }), "there is no bad object")
			t.mustHave(Exempted)
			for _, c := range t.each(Exempted) {
				by := refusedBy.FindStringSubmatch(c.Control.Refusal())
				if by == nil || !t.says(c) {
					continue
				}
				t.Reached()
				if c.Refusal() == "" && !c.Evaluated(by[1]) { // if it is evaluated, the key may be what the policy asks for
					t.Errorf("%s: %s, want a refusal by ValidatingAdmissionPolicy %s, which is not evaluated", c.What, outcome(c), by[1])
				}
			}
		},
	}, {
		ID: "PO-DOOR-8", Name: "constants-are-bounded", Level: framework.Should,
		Title:  "A value that only starts with, ends with or contains an allowed constant is not accepted.",
		Why:    "startsWith('registry.example.com') accepts registry.example.com.evil.example/a.",
		Fix:    "End the constant in a separator, compare with ==, or anchor the regular expression.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/issues/90", "https://github.com/kubescape/cel-admission-library/commit/40f62bd"},
		Check: func(t *T) {
			t.mustHave(Constants)
			refusal := t.invalid(Constants)
			t.must(refusal == "", "the API server itself refuses each value that has more than a constant: %s", refusal)
			t.refused(Constants)
		},
	}}
}

// refusedBy is the policy that a refusal names.
var refusedBy = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']*)'`)

// invalid returns the refusal of a request of a group without the policies if the API server refuses each of them that says
// something about the policies as invalid, such as a change of a field that cannot be changed. Otherwise it returns "".
func (t *T) invalid(group Group) string {
	refusal := ""
	for _, c := range t.Cases {
		switch {
		case c.Group != group:
		case c.Accepted() && c.Meaningless() == "", !c.Accepted() && c.Before.Status.Reason != metav1.StatusReasonInvalid:
			return ""
		case !c.Accepted() && refusal == "":
			refusal, _, _ = strings.Cut(c.Before.Status.Message, "\n")
		}
	}
	return refusal
}
