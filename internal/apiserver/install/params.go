package install

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Param is a kind of parameters in one namespace. The plugin for each kind of policy reads them from its own cache.
type Param struct {
	// Policy is KindValidatingPolicy or KindMutatingPolicy, Kind is the paramKind.
	Policy   string
	Kind     schema.GroupVersionKind
	Resource client.Resource
	// Namespace is empty if objects of the kind are in no namespace.
	Namespace string
}

// ReaderPrefix begins the names, after the ID of their scope, of the policies and bindings by which
// package fence reads parameters. They exist until the run ends, and decide about no other request.
const ReaderPrefix = "params-"

// Params returns what the policies of a scenario, and those that were installed for the run, can read as
// parameters: their kinds, in the namespaces of the scenario and of its requests, and in each that a binding names. A kind
// that the API server does not serve or list is left out.
func (i *Installer) Params(scope *Scope) []Param {
	i.mu.Lock()
	scopes := []*Scope{scope, i.project}
	i.mu.Unlock()
	namespaces := scope.allNamespaces()
	var policies []given
	for _, one := range scopes {
		if one != nil {
			one.mu.Lock()
			policies = append(policies, one.given...)
			one.mu.Unlock()
		}
	}
	for _, binding := range policies {
		name, _ := cloneMap(cloneMap(binding.manifest["spec"])["paramRef"])["namespace"].(string)
		namespaces = append(namespaces, name)
	}
	namespaces = slices.DeleteFunc(namespaces, func(name string) bool {
		return name == "" || strings.Contains(name, "$(") || i.Shared && !runid.Has(name, i.Run)
	})
	found := map[Param]bool{}
	for _, policy := range policies {
		kind := paramKind(policy.manifest)
		res, err := i.Client.Resources.Of(kind)
		if kind.Empty() || err != nil || !res.Deletable {
			continue
		}
		in := namespaces
		if !res.Namespaced {
			in = []string{""}
		}
		for _, namespace := range in {
			found[Param{policy.kind, kind, res, namespace}] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// paramKind returns the paramKind of a policy, or the zero value.
func paramKind(manifest map[string]any) schema.GroupVersionKind {
	kind := cloneMap(cloneMap(manifest["spec"])["paramKind"])
	apiVersion, _ := kind["apiVersion"].(string)
	name, _ := kind["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, name)
}
