package doctor

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework"
)

// Rule is a statement about every webhook configuration, policy and binding.
type Rule struct {
	// ID is the short name, "CF-BLOCK-1", and Name the long one. Both are stable and never reused.
	ID, Name string
	// Level decides the severity of findings.
	Level framework.Level
	// Title is the rule in one sentence.
	Title string
	// Why says what goes wrong otherwise, When when there is a finding, Fix what to change.
	Why, When, Fix string
	// Source has the addresses of issues, code and documentation.
	Source []string

	check func(*checker)
}

// String returns both names.
func (r Rule) String() string { return r.ID + " " + r.Name }

// All returns all rules, in the order in which they are checked.
func All() []Rule {
	return slices.Concat(blockRules(), scopeRules(), timeRules(), reachRules(), matchRules(), selectorRules(), semanticRules(), policyRules(), suppressionRules())
}

const (
	goodPractices = "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/"
	typesSource   = "https://github.com/kubernetes/api/blob/v0.36.3/admissionregistration/v1/types.go"
	policyDocs    = "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/"
)

func issue(path string) string { return "https://github.com/" + path }
