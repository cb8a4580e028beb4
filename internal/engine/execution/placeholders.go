package execution

import (
	"slices"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
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

// policyName returns the name on the API server of a policy or binding of the scenario.
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
