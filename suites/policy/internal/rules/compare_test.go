package rules

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// TestSelectorsOfWebhooks: requests are made from what the selectors of webhooks ask for and exclude.
func TestSelectorsOfWebhooks(t *testing.T) {
	requirement := func(key, operator string, values ...any) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": operator, "values": values}}}
	}
	s := Subject{Policies: []shipped.Manifest{{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"webhooks": []any{
			map[string]any{"objectSelector": requirement("skip", "DoesNotExist"), "namespaceSelector": requirement("env", "NotIn", "test")},
			map[string]any{"namespaceSelector": requirement("tier", "DoesNotExist"), "rules": []any{map[string]any{"operations": []any{"DELETE"}, "resources": []any{"pods/eviction"}}}},
		},
	}}}}
	for want, got := range map[string]any{
		"[map[] map[env:test] map[tier:example]]": s.namespaceLabels(), "[{labels skip [true contract-other]}]": s.keys(), "[pods]": s.resources(),
		"true": s.handles(admissionregistrationv1.Delete), "false": s.handles(admissionregistrationv1.Update),
	} {
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
