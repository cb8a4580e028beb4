package scenario_test

import (
	"fmt"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

func ExampleErrors() {
	_, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte("apiVersoin: v1\n")}}})
	for _, one := range scenario.Errors(err) {
		fmt.Println(one.Line, one.Column, one.Hint)
	}
	// Output: 1 1 did you mean "apiVersion"?
}
