package cli

import (
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// The time to wait is that of each webhook under test, also of one without --endpoint.
func TestEndpointTimeout(t *testing.T) {
	t.Parallel()
	webhook := func(service string) map[string]any {
		return map[string]any{"name": service + ".example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": "guard-system", "name": service}}}
	}
	selected := []scenario.Scenario{{Spec: scenario.Spec{Given: []map[string]any{{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "a"}, "webhooks": []any{webhook("one"), webhook("two")},
	}}}}}
	for timeout, want := range map[time.Duration]map[string]framework.Endpoint{
		0:               {"guard-system/one": {URL: "https://h"}},
		2 * time.Minute: {"guard-system/one": {URL: "https://h", Timeout: 2 * time.Minute}, "guard-system/two": {Timeout: 2 * time.Minute}},
	} {
		t.Run(timeout.String(), func(t *testing.T) {
			f := endpointFlags{urls: []string{"guard-system/one=https://h"}, timeout: timeout}
			got, err := f.parse(selected, nil)
			if err != nil || len(got) != len(want) {
				t.Errorf("%s: got %v, %v; want %v", timeout, got, err, want)
			}
			for name, one := range want {
				if got[name].URL != one.URL || got[name].Timeout != one.Timeout {
					t.Errorf("%s: %s: got %+v; want %+v", timeout, name, got[name], one)
				}
			}
		})
	}
}
