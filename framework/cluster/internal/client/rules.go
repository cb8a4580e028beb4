package client

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Unserved returns what a rule of a webhook or policy names that is not served and looks like a mistake:
// groups that are nearly the name of another one, and resources of served groups. Alive is true if the rule
// can match something that is served, or could be: a resource of a group that is not served, or that other
// API servers serve (see Know).
func (r *Resources) Unserved(groups, versions, resources []string) (found []object.Unserved, alive bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	served := r.groups()
	var in []string
	for i, group := range groups {
		if group == "*" || slices.Contains(served, group) {
			in = append(in, group)
			continue
		}
		if correct, near := nearGroup(group, served); near {
			found = append(found, object.Unserved{
				Field: "apiGroups", Index: i, Hint: fmt.Sprintf("did you mean %q?", correct),
				Problem: fmt.Sprintf("the API server does not serve the group %q; expected a group that it serves", group),
			})
			continue
		}
		alive = true // a CustomResourceDefinition can follow
	}
	for i, name := range resources {
		if len(in) == 0 {
			break // the groups are wrong
		}
		one, can := r.unservedResource(in, versions, name)
		if one != nil && !alive {
			one.Field, one.Index = "resources", i
			found = append(found, *one)
		}
		alive = alive || can
	}
	return found, alive
}

// groups returns the served groups, sorted.
func (r *Resources) groups() []string {
	var all []string
	for kind := range r.byKind {
		all = append(all, kind.Group)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nearGroup returns the group of Kubernetes that a wrong one probably means.
func nearGroup(group string, served []string) (string, bool) {
	if group == "core" || group == "v1" {
		return "", true
	}
	own := slices.DeleteFunc(slices.Clone(served), func(one string) bool {
		return strings.Contains(one, ".") && !strings.HasSuffix(one, ".k8s.io")
	})
	correct := suggest.Nearest(group, own)
	return correct, correct != ""
}

// unservedResource returns what is wrong with a resource of a rule, or nil, and whether it can match
// something.
func (r *Resources) unservedResource(groups, versions []string, name string) (found *object.Unserved, alive bool) {
	resource, subresource, _ := strings.Cut(name, "/")
	in := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	var names, inVersions []string
	isServed := false
	for _, one := range r.byKind {
		if !in(groups, one.Group) {
			continue
		}
		names, isServed = append(names, one.Resource), isServed || one.Resource == resource
		for _, sub := range r.subresources[one.GroupVersionResource] {
			if sub != "" {
				names = append(names, one.Resource+"/"+sub)
			}
		}
		switch {
		case resource != "*" && resource != one.Resource, !r.hasSubresource(one.GroupVersionResource, subresource):
		case in(versions, one.Version):
			return nil, true
		default:
			inVersions = append(inVersions, one.GroupVersion().String())
		}
	}
	for known := range r.knownResources {
		if !isServed && in(groups, known.Group) && known.Resource == resource {
			return nil, true // the API server only lacks it
		}
	}
	if len(inVersions) > 0 {
		slices.Sort(inVersions)
		const few = 5
		inVersions = slices.Compact(inVersions)
		return &object.Unserved{
			Problem: fmt.Sprintf("the API server does not serve %q in the versions %q; expected a version that it serves: %s", name, versions, strings.Join(inVersions[:min(few, len(inVersions))], ", ")),
		}, false
	}
	slices.Sort(names)
	return &object.Unserved{
		Problem: fmt.Sprintf("the API server does not serve a resource %q in the groups %q; expected one that it serves", name, groups),
		Hint:    strings.TrimPrefix(suggest.DidYouMean(name, slices.Compact(names)), "; "),
	}, false
}

// hasSubresource reports whether a resource has a subresource, as rules name them. That is not known of a
// CustomResourceDefinition that was added.
func (r *Resources) hasSubresource(of schema.GroupVersionResource, name string) bool {
	all, discovered := r.subresources[of]
	return name == "" || name == "*" || !discovered || slices.Contains(all, name)
}
