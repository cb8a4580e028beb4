package doctor

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is the creation of an object, as a dry run, that calls a webhook of a cluster.
type Call struct {
	// Configuration is the kind and name of the configuration, Webhook the name of the webhook. Mutates says which kind it is.
	Configuration, Webhook string
	Mutates                bool
	// Resource, Namespace and Object are what is created. Namespace is empty for a cluster-scoped resource.
	Resource  schema.GroupVersionResource
	Namespace string
	Object    map[string]any
	// Text is one line about the request. Empty if there is no such request: Problem then says why.
	Text, Problem string
}

// dialName is the name of the objects of dry runs.
const dialName = "admissiontest-doctor-dial"

// Calls returns a Call for each webhook of a cluster.
func Calls(ctx context.Context, snapshot *Snapshot) ([]Call, error) {
	w, err := newWorld(ctx, Input{Cluster: snapshot})
	if w == nil || w.admission == nil {
		return nil, err
	}
	c := &checker{world: w}
	var all []Call
	for _, h := range w.webhooks {
		all = append(all, c.call(h))
	}
	return all, nil
}

// call returns the Call for a webhook: for the first of its rules, and the first namespace, for which it is certain that it is
// called.
func (c *checker) call(h *webhook) Call {
	call := Call{Configuration: h.configuration.String(), Webhook: h.Name, Mutates: h.mutates}
	if !h.fails {
		call.Problem = "failurePolicy is Ignore: an API server does not return the error of the call"
		return call
	}
	namespaces := []string{"default"}
	for _, namespace := range c.byKind["Namespace"] {
		if namespace.GetDeletionTimestamp() == nil {
			namespaces = append(namespaces, namespace.GetName())
		}
	}
	for _, rule := range h.Rules {
		if !slices.Contains(operations(rule), "CREATE") {
			continue
		}
		p, ok := c.probeFor(rule, "CREATE")
		if !ok || p.Subresource != "" || p.Kind.Kind == "Unknown" {
			continue
		}
		for _, namespace := range namespaces {
			r, text := p.Request, "CREATE "+p.Resource.Resource+"/"+dialName
			object := (&object{}).with(p.Object).DeepCopy()
			object.SetName(dialName)
			r.Name = dialName
			if p.Namespace != "" {
				object.SetNamespace(namespace)
				r.Namespace, text = namespace, text+" in "+namespace
			}
			r.Object = object.Object
			if c.reaches(h, probeOf(r, text)).called {
				call.Resource, call.Namespace, call.Object, call.Text = p.Resource, r.Namespace, object.Object, text+" (dry run)"
				return call
			}
			if p.Namespace == "" {
				break
			}
		}
	}
	call.Problem = "no creation of an object is known for which it is certainly called"
	return call
}
