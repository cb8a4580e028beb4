package contract_test

import "github.com/admissiontest/admissiontest/suites/contract"

// panicMutants returns the broken plugins of this file.
func panicMutants() map[contract.ID]mutant { return nil }
