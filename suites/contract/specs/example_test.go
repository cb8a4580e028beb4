package specs_test

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/admissiontest/admissiontest/suites/contract"
	"github.com/admissiontest/admissiontest/suites/contract/specs"
)

// In a Ginkgo suite, write var _ = specs.Describe(…), and filter by the names of rules.
func ExampleDescribe() {
	specs.Describe("Forbidden", subject("sound"), contract.Only("A1", "validate-changes-nothing"))

	for _, spec := range ginkgo.PreviewSpecs("suite").SpecReports {
		if spec.ContainerHierarchyTexts[0] == "Forbidden" {
			fmt.Println(spec.Labels())
		}
	}
	// Unordered output:
	// [contract]
	// [contract V1 validate-changes-nothing MUST]
	// [contract A1 admit-is-idempotent MUST]
}
