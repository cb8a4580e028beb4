package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A step can install a webhook under test, but not in a dry run.
func TestWebhookServicesOfSteps(t *testing.T) {
	configuration := func(namespace string) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": namespace, "name": "s"}}}}}
	}
	got := WebhookServices([]Scenario{{Spec: Spec{When: []Step{
		{Install: []map[string]any{configuration("b"), configuration("$(id)")}},
		{Parallel: []Step{{Create: configuration("a")}}}, {Update: map[string]any{"webhooks": "odd"}},
		{Create: configuration("dry"), DryRun: true},
	}}}})
	if diff := cmp.Diff([]string{"a/s", "b/s"}, got); diff != "" {
		t.Errorf("services (-want +got)\n%s", diff)
	}
}
