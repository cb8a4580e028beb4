package policytest

import (
	"maps"
	"regexp"
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/manifests"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// asksForNamespace matches what asks for the name of a namespace in a policy or binding: in CEL,
// and the label that has the name.
var asksForNamespace = regexp.MustCompile(`namespaceObject\.metadata\.name|request\.namespace|bject\.metadata\.namespace|kubernetes\.io/metadata\.name`)

// asksForNames reports whether the names of namespaces matter: a policy or binding asks for them,
// and the test has namespaces. Then the policies cannot be narrowed to namespaces with
// other names.
func (p *policyTable) asksForNames() bool {
	asks := slices.ContainsFunc(p.manifests(p.root.Get("policies"), decode.Root("policies")), func(one manifests.Manifest) bool {
		return mentions(one.Node.Get("spec"), asksForNamespace)
	})
	return asks && (len(p.test.Namespaces) > 0 || slices.ContainsFunc(p.root.List("cases"), p.namesNamespace))
}

// namesNamespace reports whether a case has a namespace.
func (p *policyTable) namesNamespace(n *strictyaml.Node) bool {
	return n.Has("namespace") || slices.ContainsFunc(p.manifests(n.Get("object"), decode.Root("object")), func(one manifests.Manifest) bool {
		return one.Node.Get("metadata").Has("namespace")
	})
}

// mentions reports whether a key or text matches.
func mentions(n *strictyaml.Node, pattern *regexp.Regexp) bool {
	if n == nil {
		return false
	}
	return pattern.MatchString(n.Raw) || slices.ContainsFunc(n.Items, func(item *strictyaml.Node) bool { return mentions(item, pattern) }) ||
		slices.ContainsFunc(n.Fields, func(field strictyaml.Field) bool {
			return pattern.MatchString(field.Name) || mentions(field.Value, pattern)
		})
}

// isSystemNamespace reports whether every API server has a namespace of that name.
func isSystemNamespace(name string) bool {
	return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, name)
}

// openNamespaces returns the namespaces that are created for policies that are not narrowed, and
// the steps that give labels to those that exist.
func (p *policyTable) openNamespaces() (given []map[string]any, prepare []scenario.Step) {
	for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
		labels := map[string]any{}
		for key, value := range p.test.Namespaces[name] {
			labels[key] = value
		}
		metadata := map[string]any{"labels": labels}
		switch {
		case !isSystemNamespace(name):
			metadata["name"] = name
			given = append(given, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
		case len(labels) > 0:
			prepare = append(prepare, scenario.Step{Patch: &scenario.Patch{ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: name}, Merge: map[string]any{"metadata": metadata}}})
		}
	}
	return given, prepare
}
