package rbac

import (
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
)

// Needs returns what scenarios are going to send to an existing API server. Scenarios that
// such a server cannot run (those with a server profile or that need a capability) are left
// out.
func Needs(scenarios []scenario.Scenario) []cluster.Need {
	var needs []cluster.Need
	for _, s := range scenarios {
		if len(s.Spec.Needs) > 0 || s.Spec.Server != nil {
			continue
		}
		needs = append(needs, cluster.Need{Who: s.Metadata.Name, Requests: engine.Requests(s), Metrics: s.Spec.FeatureGate != ""})
	}
	return needs
}
