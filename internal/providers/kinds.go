package providers

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
)

// misspeltKinds returns a scenario.Error for each kind that neither Kubernetes has nor one of the scenarios
// defines, and that seems to be misspelt.
func misspeltKinds(scenarios []scenario.Scenario) error {
	var definitions []map[string]any
	for _, s := range scenario.Cases(scenarios) {
		for _, request := range execution.Of(s) {
			if object, ok := request.Object.(*unstructured.Unstructured); ok && request.Kind.Kind == "CustomResourceDefinition" {
				definitions = append(definitions, object.Object)
			}
		}
	}
	check := apiserver.KindCheck(definitions)
	var errs []error
	for _, s := range scenarios {
		of := func(s scenario.Scenario, path string, spec scenario.Spec) {
			for _, request := range execution.Of(scenario.Scenario{Spec: spec}) {
				if err := check(request.Kind); err != nil {
					errs = append(errs, s.ErrorAt(path, "", err.Error(), ""))
				}
			}
		}
		for i, manifest := range s.Spec.Given {
			of(s, fmt.Sprintf("given[%d]", i), scenario.Spec{Given: []map[string]any{manifest}})
		}
		for _, one := range scenario.Cases([]scenario.Scenario{s}) {
			for i, step := range one.Spec.When {
				of(one, fmt.Sprintf("when[%d]", i), scenario.Spec{When: []scenario.Step{step}})
			}
		}
		of(s, "hooks", scenario.Spec{Hooks: s.Spec.Hooks})
	}
	return errors.Join(errs...)
}
