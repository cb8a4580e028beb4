package rbac

import (
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/requests"
)

// Needs returns what scenarios are going to send to an existing API server. Scenarios that
// such a server cannot run (those with a server profile, without isolation, or that need a
// capability) are left out. It can have an admission plugin that is needed.
func Needs(scenarios []scenario.Scenario) []cluster.Need {
	var needs []cluster.Need
	for _, s := range scenarios {
		capability := func(need string) bool { return !strings.HasPrefix(need, framework.PluginPrefix) }
		if slices.ContainsFunc(s.Spec.Needs, capability) || s.Spec.Server != nil || s.Spec.Isolation == scenario.IsolationNone {
			continue
		}
		needs = append(needs, cluster.Need{Who: s.Metadata.Name, Requests: requests.Of(s), Metrics: requests.NeedsMetrics(s)})
	}
	return needs
}
