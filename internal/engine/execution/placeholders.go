package execution

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// lookup returns the value of a placeholder.
func (c *Case) lookup(name string) (any, bool) {
	switch name {
	case "id", "namespace":
		return c.ID, true
	case "run":
		return runid.Prefix(c.target.RunID()), true
	}
	if value, ok := c.hooks[name]; ok {
		return value, true
	}
	if policy, ok := strings.CutPrefix(name, "policy."); ok {
		return c.policyName(policy), c.hasPolicy(policy)
	}
	if short, ok := strings.CutPrefix(name, "namespace."); ok {
		return c.namespaceName(short), slices.ContainsFunc(c.Scenario.Spec.Namespaces, func(n scenario.Namespace) bool { return n.Name == short })
	}
	path, ok := strings.CutPrefix(name, "steps.")
	if !ok {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return walk(c.results, path)
}

// policyName returns the name on the API server of a policy, binding or webhook configuration of the scenario.
func (c *Case) policyName(name string) string {
	if c.Open() {
		return name
	}
	return c.ID + "-" + name
}

// hasPolicy reports whether the scenario installs a policy or a binding of that name.
func (c *Case) hasPolicy(name string) bool {
	manifests := slices.Clone(c.Scenario.Spec.Given)
	for _, step := range c.Scenario.Spec.When {
		manifests = append(manifests, step.Install...)
	}
	return slices.ContainsFunc(manifests, func(manifest map[string]any) bool {
		metadata, _ := manifest["metadata"].(map[string]any)
		return object.IsPolicy(manifest) && metadata["name"] == name
	})
}

// namespaceName returns the name on the API server of one of spec.namespaces.
func (c *Case) namespaceName(short string) string { return c.ID + "-" + short }

// substituteGiven replaces the placeholders of manifests. In a CustomResourceDefinition, unknown
// placeholders stay unchanged: descriptions of fields of Pods contain $(VAR_NAME).
func (c *Case) substituteGiven(manifests []map[string]any) ([]map[string]any, error) {
	out := make([]map[string]any, len(manifests))
	for i, manifest := range manifests {
		lookup := c.lookup
		if kindOf(manifest).Kind == "CustomResourceDefinition" {
			lookup = func(name string) (any, bool) {
				if value, ok := c.lookup(name); ok {
					return value, true
				}
				return "$(" + name + ")", true
			}
		}
		var err error
		if out[i], err = scenario.Replace(manifest, lookup); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// walk follows a dotted path into decoded JSON. A number indexes a list. Keys with dots
// cannot be reached.
func walk(value any, path string) (any, bool) {
	for _, part := range strings.Split(path, ".") {
		switch holder := value.(type) {
		case map[string]any:
			next, ok := holder[part]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(holder) {
				return nil, false
			}
			value = holder[i]
		default:
			return nil, false
		}
	}
	return value, true
}

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

// Texts returns what replaces each text of the outcome. It does not have what is not shown, and has the names that
// the user wrote instead of those that the run has made of them. The namespace of the scenario is $(namespace).
func (c *Case) Texts() func(text string) string {
	run := c.ID[:max(strings.LastIndex(c.ID, "-"), 0)]
	if run == "" {
		return redact.Text
	}
	plain := map[string]bool{}
	for _, one := range c.Own() {
		plain[(&unstructured.Unstructured{Object: one}).GetName()] = true
	}
	made := regexp.MustCompile(`\b` + regexp.QuoteMeta(run) + `\b(-\d{5}\b|-installed\b)?(?:-([a-zA-Z0-9.-]*[a-zA-Z0-9]))?(\.[a-z])?`)
	written := func(name string) string {
		parts := made.FindStringSubmatch(name)
		number, rest, group := parts[1], parts[2], parts[3]
		switch {
		case number == "-installed" && rest != "", run+number == c.ID && (plain[rest] || rest != "" && c.Scenario.IsPolicyTest()):
			return rest // a PolicyTest has no placeholders
		case number == "" || number == "-installed":
			return "$(run)" + name[len(run):]
		case run+number != c.ID:
			return name // of another scenario
		case rest == "" && group == "": // otherwise an API group, or another name
			return "$(namespace)"
		default:
			return "$(id)" + name[len(c.ID):]
		}
	}
	return func(text string) string { return made.ReplaceAllStringFunc(redact.Text(text), written) }
}
