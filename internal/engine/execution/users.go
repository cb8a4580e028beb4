package execution

import (
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// addUsers adds the users that a step acts as.
func (c *Case) addUsers(step scenario.Step) {
	if step.As != nil {
		c.users[strings.NewReplacer("$(id)", c.ID, "$(namespace)", c.ID).Replace(step.As.Name)] = true
	}
	for _, inner := range step.Parallel {
		c.addUsers(inner)
	}
}

// ownUser reports whether requests of a user can belong to the scenario. On a cluster
// controllers write to its namespaces too, and only their requests do not count: what an
// API server says of the user can be what the scenario tests.
func (c *Case) ownUser(name string) bool {
	info := c.target.Info()
	if c.Open() && name == apiServerUser && !c.users[name] {
		return false // it writes Leases, for instance
	}
	if info.Kind == framework.TargetEnvtest || name == info.User || c.users[name] {
		return true // on target envtest there are no controllers
	}
	return !isController(name) || runid.Has(name, c.ID)
}

// apiServerUser is the user of the requests that an API server sends to itself.
const apiServerUser = "system:apiserver"

// isController reports whether a user is a component of Kubernetes or a workload of the
// cluster, by the names that Kubernetes reserves. See
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
func isController(name string) bool {
	switch name {
	case apiServerUser, "system:kube-controller-manager", "system:cloud-controller-manager", "system:kube-scheduler", "system:kube-proxy":
		return true
	default:
		return strings.HasPrefix(name, "system:serviceaccount:") || strings.HasPrefix(name, "system:node:")
	}
}
