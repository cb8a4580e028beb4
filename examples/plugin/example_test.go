package plugin_test

import (
	"fmt"

	"github.com/admissiontest/admissiontest/suites/contract"
)

// A report of the contract suite, as another tool could print it.
func Example() {
	owner := subject()
	owner.Name = "Owner"
	for _, outcome := range contract.Check(owner, contract.Only("admit-is-idempotent", "waits-for-caches")).Outcomes {
		fmt.Println(outcome.Rule, outcome.Verdict)
	}
	// Output:
	// A1 admit-is-idempotent pass
	// R1 waits-for-caches pass
}
