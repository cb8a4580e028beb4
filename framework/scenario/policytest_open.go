package scenario

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// asksForNamespace matches what asks for the name of a namespace in a policy or binding: in CEL,
// and the label that has the name.
var asksForNamespace = regexp.MustCompile(`namespaceObject\.metadata\.name|request\.namespace|bject\.metadata\.namespace|kubernetes\.io/metadata\.name`)

// asksForNames reports whether the names of namespaces matter: a policy or binding asks for them,
// and the test has namespaces. Then the policies cannot be narrowed to namespaces with
// other names.
func (p *policyTable) asksForNames() bool {
	asks := slices.ContainsFunc(p.manifests(p.root.Get("policies"), document.Root("policies")), func(one *document.Node) bool {
		text, err := json.Marshal(one.Get("spec").Plain())
		return err == nil && asksForNamespace.Match(text)
	})
	return asks && (len(p.test.Namespaces) > 0 || slices.ContainsFunc(p.root.List("cases"), p.namesNamespace))
}

// namesNamespace reports whether a case has a namespace.
func (p *policyTable) namesNamespace(n *document.Node) bool {
	return n.Has("namespace") || slices.ContainsFunc(p.manifests(n.Get("object"), document.Root("object")), func(one *document.Node) bool {
		return one.Get("metadata").Has("namespace")
	})
}

// isSystemNamespace reports whether every API server has a namespace of that name.
func isSystemNamespace(name string) bool {
	return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, name)
}

// openNamespaces returns the namespaces that are created for policies that are not narrowed, and
// the steps that give labels to those that exist.
func (p *policyTable) openNamespaces() (given []map[string]any, prepare []Step) {
	for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
		labels := p.test.Namespaces[name]
		switch {
		case !isSystemNamespace(name):
			given = append(given, namespaceManifest(name, labels))
		case len(labels) > 0:
			prepare = append(prepare, Step{Patch: &Patch{ObjectReference: ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: name}, Merge: namespaceManifest("", labels)}})
		}
	}
	return given, prepare
}

// namespaceManifest returns a Namespace, or without a name a patch of one.
func namespaceManifest(name string, labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	if name == "" {
		return map[string]any{"metadata": map[string]any{"labels": all}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": all}}
}
