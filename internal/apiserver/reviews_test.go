package apiserver

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

// Whether webhooks are called for reviews is what the feature gate says, or else the version: a server does not list
// the gate before 1.37, and some day no longer.
func TestWebhooksForReviews(t *testing.T) {
	t.Parallel()
	gate := func(on bool) map[string]bool {
		return map[string]bool{"ExcludeAdmissionWebhookVirtualResources": on}
	}
	for name, test := range map[string]struct {
		server framework.TargetInfo
		want   bool
	}{
		"1.36":                   {framework.TargetInfo{ServerVersion: "v1.36.3", FeatureGates: map[string]bool{"Other": true}}, true},
		"1.37":                   {framework.TargetInfo{ServerVersion: "v1.37.2", FeatureGates: gate(true)}, false},
		"1.37 with the gate off": {framework.TargetInfo{ServerVersion: "v1.37.2", FeatureGates: gate(false)}, true},
		"without the gate":       {framework.TargetInfo{ServerVersion: "v1.41.0", FeatureGates: map[string]bool{"Other": true}}, false},
		"gates not known, 1.35":  {framework.TargetInfo{ServerVersion: "v1.35.4+k3s1"}, true},
		"gates not known, 1.38":  {framework.TargetInfo{ServerVersion: "v1.38.0"}, false},
		"nothing known":          {framework.TargetInfo{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := webhooksForReviews(test.server); got != test.want {
				t.Errorf("webhooksForReviews = %t, want %t", got, test.want)
			}
		})
	}
}
