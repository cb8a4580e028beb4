package policy_test

import (
	"fmt"

	"github.com/admissiontest/admissiontest/suites/policy"
)

// The rules say what goes wrong if a policy breaks them.
func ExampleRules() {
	for _, rule := range policy.Rules() {
		if rule.Is("update-into-violation") {
			fmt.Printf("%s (%s): %s\n%s\n", rule, rule.Level, rule.Title, rule.Why)
		}
	}
	// Output:
	// PO-DOOR-1 update-into-violation (MUST): What the creation refuses, an update refuses.
	// Anyone creates a good object, and then makes it bad.
}
