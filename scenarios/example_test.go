package scenarios_test

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

func Example() {
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS}, "dryrun")
	if err != nil {
		fmt.Println(err)
	}
	for _, one := range all[:2] {
		fmt.Println(one.Spec.Level, one.Metadata.Name)
	}
	// Output:
	// MUST dryrun.called-with-dry-run-true
	// MAY dryrun.connect-is-refused
}
