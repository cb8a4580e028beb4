package scenario

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
)

// WebhookServices returns the Services of the webhooks under test, as sorted
// NAMESPACE/NAME. A webhook under test is one whose clientConfig.service names a
// Service outside of the scenario's namespaces. Its configuration can be given, installed or
// written by a step that is no dry run. The manifests are installed for all scenarios.
func WebhookServices(scenarios []Scenario, manifests ...map[string]any) []string {
	found := map[string][]string{}
	for _, manifest := range manifests {
		manifestServices(manifest, found)
	}
	for _, one := range scenarios {
		maps.Copy(found, one.WebhooksUnderTest())
	}
	return slices.Sorted(maps.Keys(found))
}

// WebhooksUnderTest returns the names of the webhooks under test, by NAMESPACE/NAME of their
// Service. See WebhookServices. A conversion webhook has no name.
func (s Scenario) WebhooksUnderTest() map[string][]string {
	found := map[string][]string{}
	for _, manifest := range s.Spec.Given {
		manifestServices(manifest, found)
	}
	stepServices(s.Spec.When, found)
	return found
}

func stepServices(steps []Step, found map[string][]string) {
	for _, step := range steps {
		if step.DryRun {
			continue // no webhook is ever called
		}
		for _, manifest := range append([]map[string]any{step.Create, step.Update, step.Apply}, step.Install...) {
			manifestServices(manifest, found)
		}
		stepServices(step.Parallel, found)
	}
}

func manifestServices(manifest map[string]any, found map[string][]string) {
	webhooks, _ := manifest["webhooks"].([]any)
	if manifest["kind"] == "CustomResourceDefinition" {
		conversion, _, _ := unstructured.NestedFieldNoCopy(manifest, "spec", "conversion", "webhook")
		webhooks = []any{conversion}
	}
	for _, item := range webhooks {
		webhook, _ := item.(map[string]any)
		client, _ := webhook["clientConfig"].(map[string]any)
		service, _ := client["service"].(map[string]any)
		namespace, _ := service["namespace"].(string)
		name, _ := service["name"].(string)
		if full := grammar.ServiceName(namespace, name); full != "" {
			called, _ := webhook["name"].(string)
			found[full] = append(found[full], called)
		}
	}
}
