package rbac

import (
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine/requests"
)

// Needs returns the requests that scenarios will send to an existing API server. It leaves out
// scenarios that cannot run on such a server: those with a server profile, without isolation, or
// that need a capability. It includes scenarios that need an admission plugin or controllers, because an
// existing server can have them.
func Needs(scenarios []scenario.Scenario) []apiserver.Need {
	var needs []apiserver.Need
	for _, s := range scenario.Cases(scenarios) {
		capability := func(need string) bool {
			return !strings.HasPrefix(need, framework.PluginPrefix) && need != framework.CapabilityControllers
		}
		if slices.ContainsFunc(s.Spec.Needs, capability) || s.Spec.Server != nil || s.Spec.Isolation == scenario.IsolationNone {
			continue
		}
		needs = append(needs, apiserver.Need{Who: s.Metadata.Name, Requests: requests.Of(s), Grants: s.IsPolicyTest(), Metrics: requests.NeedsMetrics(s)})
	}
	return needs
}
