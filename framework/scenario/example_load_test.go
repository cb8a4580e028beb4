package scenario_test

import (
	"fmt"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

func ExampleLoad() {
	files := fstest.MapFS{"dryrun/none.yaml": {Data: []byte(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: dryrun.create.persists-nothing}
spec:
  level: MUST
  requirement: A dry run persists nothing.
  source: ["https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run"]
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      dryRun: true
    - get: {apiVersion: v1, kind: ConfigMap, name: a}
      then: {code: 404}
`)}}
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: files})
	if err != nil {
		fmt.Println(err)
	}
	for _, one := range scenarios {
		fmt.Println(one.Area, one.Metadata.Name, one.Lines)
	}
	// Output: dryrun dryrun.create.persists-nothing [9 11]
}
