package fakes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// covers reports whether a resource in the notation of Calls.Has covers a resource and subresource.
func covers(notation string, resource schema.GroupResource, subresource string) bool {
	of, sub, _ := strings.Cut(notation, "/")
	name, group, grouped := strings.Cut(of, ".")
	return notation == "*" || (name == "*" || name == resource.Resource) &&
		(!grouped || group == resource.Group) &&
		(sub == "*" || sub == subresource)
}

// checkNotation returns an error for a verb that no call has, and for a resource that the World does
// not have.
func (w *World) checkNotation(verb, resource string) error {
	verbs, of := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, "API requests"
	if strings.HasPrefix(resource, "/") {
		verbs, of = []string{"get", "head", "post", "put", "patch", "delete", "options"}, "requests without a resource"
	}
	if verb != "*" && !slices.Contains(verbs, verb) {
		meant := suggest.DidYouMean(verb, verbs)
		if of, ok := map[string]string{"post": "create", "put": "update"}[strings.ToLower(verb)]; ok {
			meant = fmt.Sprintf("; did you mean %q?", of)
		}
		return fmt.Errorf("verb %q is none of %s%s; give %q or one of %s", verb, of, meant, "*", strings.Join(verbs, ", "))
	}
	if resource == "*" || strings.HasPrefix(resource, "/") {
		return nil
	}
	return w.checkResource(resource)
}

// checkResource returns an error for a resource that the World does not have.
func (w *World) checkResource(resource string) error {
	if resource == "" {
		return errors.New(`the resource is empty: give one such as "pods", "deployments.apps" or "pods/status", or "*"`)
	}
	of, sub, divided := strings.Cut(resource, "/")
	_, _, grouped := strings.Cut(of, ".")
	var names []string
	for _, gv := range w.kinds.Versions() {
		for name := range w.kinds.Served(gv) {
			served := schema.GroupResource{Group: gv.Group, Resource: name}
			if covers(of, served, "") {
				return nil
			}
			if grouped {
				name = served.String()
			}
			if divided {
				name += "/" + sub
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("the World has no resource %q%s; add a custom resource with fakes.WithMappings or fakes.WithScheme", resource, suggest.DidYouMean(resource, names))
}
