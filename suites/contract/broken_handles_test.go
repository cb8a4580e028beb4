package contract_test

import "github.com/admissiontest/admissiontest/suites/contract"

// handlesMutants returns the broken plugins of this file.
func handlesMutants() map[contract.ID]mutant { return nil }
