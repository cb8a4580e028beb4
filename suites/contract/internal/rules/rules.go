// Package rules has the rules of the contract suite, one file for each group of rules.
package rules

import (
	"slices"

	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// All returns every rule in the order of their checks.
func All() []check.Rule {
	return slices.Concat(
		requestsRules(), handlesRules(), validateRules(), admitRules(), memoryRules(),
		requestRules(), oddityRules(), refusalRules(), dryRunRules(), scopeRules(), unrelatedRules(), decoyRules(), sameFieldsRules(), listsRules(), boundariesRules(), typesRules(),
		cacheRules(), countRules(), failureRules(), authorizerRules(), initializationRules(), factoryRules(), lifecycleRules(),
		historyRules(), deletionRules(), updatesRules(),
	)
}
