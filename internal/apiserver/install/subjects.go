package install

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// subjects are the objects that the requests of a scenario are for, as far as narrowing depends on
// them.
type subjects struct {
	// names are the names of cluster-scoped objects, sorted.
	names []string
	// generated are the values of generateName of cluster-scoped objects, sorted.
	generated []string
	// resources are the resources of cluster-scoped objects, by group.
	resources map[string][]string
	// nameless is true if a request for cluster-scoped objects has no name: the name is generated, or
	// the request is a review or for a collection.
	nameless bool
	// complete is true if nothing else is known only when the requests are sent.
	complete bool
	// namespaces are the namespaces of the scenario, sorted.
	namespaces []string
	// objects are the Namespaces that requests are for and that are not the scenario's, sorted.
	objects []string
	// unnamed is true if the name of a Namespace is not known before its request: then it has no
	// label by which a selector can match it.
	unnamed bool
}

// subjects returns the subjects of the Requests of a scope, and the namespaces that it has.
func (s *Scope) subjects(resources *client.Resources) subjects {
	s.mu.Lock()
	x := subjects{complete: s.Requests != nil, namespaces: append([]string{s.ID}, s.namespaces...), resources: map[string][]string{}}
	s.mu.Unlock()
	for _, request := range s.Requests {
		if request.Operation() == "" {
			continue
		}
		resolved, err := resources.Resolve(request)
		switch {
		case err != nil:
			x.complete = false // a step can create its CustomResourceDefinition
		case resolved.Resource.Namespaced:
			x.inNamespace(s.ID, request.Namespace)
		case resolved.Resource.GroupVersionResource == client.Namespaces():
			x.namespace(s.ID, resolved)
		default:
			x.clusterScoped(resolved)
		}
	}
	for _, list := range []*[]string{&x.names, &x.generated, &x.namespaces, &x.objects} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	x.objects = slices.DeleteFunc(x.objects, func(name string) bool { return slices.Contains(x.namespaces, name) })
	return x
}

// dynamic reports whether a name has a placeholder whose value is not known yet.
func dynamic(name string) bool { return strings.Contains(name, "$(") }

func (x *subjects) inNamespace(id, name string) {
	if runid.Has(name, id) && !dynamic(name) {
		x.namespaces = append(x.namespaces, name)
	}
}

// namespace adds a Request for a Namespace.
func (x *subjects) namespace(id string, request client.Request) {
	name, _ := namesOf(request)
	switch {
	case request.Verb == framework.VerbDeleteCollection: // the API server does not have it
	case name == "" || dynamic(name):
		x.clusterScoped(request)
		x.unnamed = true
	default:
		x.clusterScoped(request)
		x.objects = append(x.objects, name)
		x.inNamespace(id, name)
	}
}

// clusterScoped adds a Request for a cluster-scoped object.
func (x *subjects) clusterScoped(request client.Request) {
	res := request.Resource
	if !slices.Contains(x.resources[res.Group], res.Resource) {
		x.resources[res.Group] = append(x.resources[res.Group], res.Resource)
	}
	name, generated := namesOf(request)
	switch {
	case dynamic(name), dynamic(generated):
		x.complete = false
	case name != "":
		x.names = append(x.names, name)
	default:
		x.nameless = true
		if generated != "" {
			x.generated = append(x.generated, generated)
		}
	}
}

// namesOf returns the name of the object that a Request is for, or the beginning of a name that is
// generated.
func namesOf(request client.Request) (name, generated string) {
	if request.Verb == framework.VerbDeleteCollection {
		return "", ""
	}
	if name = request.Name; name != "" || request.Object == nil {
		return name, ""
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return "", ""
	}
	object := unstructured.Unstructured{Object: fields}
	return object.GetName(), object.GetGenerateName()
}

// pattern returns a regular expression for the names of what the requests of the scenario are for.
func (x subjects) pattern(id string) string {
	pattern := runid.Pattern(id)
	var others []string
	for _, name := range slices.Concat(x.names, x.generated) {
		if !runid.Has(name, id) {
			others = append(others, regexp.QuoteMeta(name))
		}
	}
	if len(others) == 0 {
		return pattern
	}
	return pattern + "|^(" + strings.Join(others, "|") + ")$"
}
