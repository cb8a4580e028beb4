package contract_test

import "github.com/admissiontest/admissiontest/suites/contract"

// readyMutants returns the broken plugins of this file.
func readyMutants() map[contract.ID]mutant { return nil }
