package fields_test

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/internal/fields"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ apiVersion, kind, path, want string }{
		{"v1", "ConfigMap", "dta", "data"},
		{"v1", "ConfigMap", "metadata.lables", "labels"},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "webhooks[0].timeoutSecond", "timeoutSeconds"},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "spec.matchConstraints.resourceRules[0].scpe", "scope"},
		{"apps/v1", "Deployment", "spec.template.spec.containers[0].imge", "image"},
		{"v1", "ConfigMap", "none.deeper", ""},
		{"example.com/v1", "Widget", "spec", ""},
	} {
		got := fields.Names(one.apiVersion, one.kind, one.path)
		if one.want == "" && len(got) > 0 || one.want != "" && !slices.Contains(got, one.want) {
			t.Errorf("%s %s: got %v; want %q", one.kind, one.path, got, one.want)
		}
	}
}
