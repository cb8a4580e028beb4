package doctor

import (
	"slices"

	"github.com/admissiontest/admissiontest/internal/rule"
)

// Rule is a statement about every webhook configuration, policy and binding. Its Level decides the severity of
// findings, and its When says when there is one.
type Rule = rule.Definition[*checker]

// All returns all rules, in the order in which they are checked.
func All() []Rule {
	return slices.Concat(blockRules(), scopeRules(), reachRules(), matchRules(), semanticRules(), policyRules(), suppressionRules())
}

const (
	goodPractices = "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/"
	typesSource   = "https://github.com/kubernetes/api/blob/v0.36.3/admissionregistration/v1/types.go"
	policyDocs    = "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/"
)

func issue(path string) string { return "https://github.com/" + path }
