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
		"true": s.handles(admissionregistrationv1.Delete) && !(&T{Subject: s}).handles(admissionregistrationv1.Delete), "false": s.handles(admissionregistrationv1.Update),
	} {
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// TestFields: what A refuses and B allows comes first. What is ignored does not differ, and a verdict is all that differs.
func TestFields(t *testing.T) {
	allowed, denied, other := Decision{Allowed: true, Code: 201}, Decision{Code: 403, Message: "no"}, Decision{Code: 403, Message: "never", Warnings: []string{"w"}}
	for name, test := range map[string]struct {
		of      [2]Decision
		ignored []string
		fields  string
		rank    int
	}{
		"A refuses":  {[2]Decision{denied, allowed}, nil, "[verdict]", 0},
		"B refuses":  {[2]Decision{allowed, denied}, []string{"message"}, "[verdict]", 1},
		"messages":   {[2]Decision{denied, other}, nil, "[message warnings]", 2},
		"ignored":    {[2]Decision{denied, other}, []string{"message"}, "[warnings]", 2},
		"no verdict": {[2]Decision{denied, allowed}, []string{"verdict", "code"}, "[message]", 0},
	} {
		c := comparing{ignored: test.ignored}
		if fields, rank := fmt.Sprint(c.fields(test.of)), (Difference{Responses: test.of}).rank(); fields != test.fields || rank != test.rank {
			t.Errorf("%s: got %s and %d, want %s and %d", name, fields, rank, test.fields, test.rank)
		}
	}
	if got := denied.String(); got != "403: no" {
		t.Errorf("got %q", got)
	}
}
