package install

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Param is an object that policies can read as their parameter. The plugin for each kind of policy reads
// parameters from its own cache.
type Param struct {
	// Policy is KindValidatingPolicy or KindMutatingPolicy, Kind is the paramKind.
	Policy string
	Kind   schema.GroupVersionKind
	// Object is the parameter. Without a name it stands for the kind: that the plugin knows it.
	Object client.Object
}

// ReaderPrefix begins the names, after the ID of their scope, of the policies and bindings by which
// package fence reads parameters. They exist until the run ends, and decide about no other request.
const ReaderPrefix = "params-"

// noteObject notes an object that can be a parameter of a policy.
func (s *Scope) noteObject(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects = map[client.Object]bool{}
	}
	s.objects[client.Object{Resource: o.Resource, Namespace: o.Namespace, Name: o.Name}] = true
}

// Params returns what the policies of a scenario, and those that were installed for the run, can read as
// parameters: their kinds, each object of these kinds that the scenario or the run installed or wrote, and
// each that a binding names, whether it exists or not. A kind that the API server does not serve or list is
// left out.
func (i *Installer) Params(scope *Scope) []Param {
	scopes := []*Scope{scope}
	i.mu.Lock()
	if i.project != nil {
		scopes = append(scopes, i.project)
	}
	i.mu.Unlock()
	var policies []given
	var objects []client.Object
	for _, one := range scopes {
		one.mu.Lock()
		policies = append(policies, one.given...)
		objects = slices.AppendSeq(objects, maps.Keys(one.objects))
		one.mu.Unlock()
	}
	found := map[Param]bool{}
	for _, policy := range policies {
		kind, ok := paramKind(policy.manifest)
		res, err := i.Client.Resources.Of(kind)
		if !ok || err != nil || !res.Deletable {
			continue
		}
		of := Param{Policy: policy.kind, Kind: kind, Object: client.Object{Resource: res}}
		if res.Namespaced {
			of.Object.Namespace = scope.ID
		}
		found[of] = true
		for _, o := range append(named(policy, policies, of.Object), objects...) {
			of.Object = client.Object{Resource: res, Namespace: o.Namespace, Name: o.Name}
			own := runid.Has(o.Namespace, i.Run) || o.Namespace == "" || scope.Open || slices.Contains(i.Foreign, o.Namespace)
			if own && o.Resource.GroupResource() == res.GroupResource() {
				found[of] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// named returns the parameters that the bindings of a policy name, by default in the namespace of an
// object.
func named(policy given, all []given, like client.Object) []client.Object {
	var found []client.Object
	for _, g := range all {
		spec := cloneMap(g.manifest["spec"])
		of, _ := spec["policyName"].(string)
		ref := cloneMap(spec["paramRef"])
		name, _ := ref["name"].(string)
		if g.scope != policy.scope || g.kind != policy.kind+"Binding" || name == "" || of != policy.name {
			continue
		}
		one := like
		one.Name = name
		if namespace, _ := ref["namespace"].(string); namespace != "" && like.Namespace != "" {
			one.Namespace = namespace
		}
		found = append(found, one)
	}
	return found
}

// paramKind returns the paramKind of a policy. It is false for other objects, and if there is none.
func paramKind(manifest map[string]any) (schema.GroupVersionKind, bool) {
	apiVersion, _, _ := unstructured.NestedString(manifest, "spec", "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(manifest, "spec", "paramKind", "kind")
	return schema.FromAPIVersionAndKind(apiVersion, kind), apiVersion != "" && kind != ""
}
