// Package confine refuses requests of scenarios that could change or read what belongs to
// other clients of a cluster.
//
// A scenario may name its namespaces, which have its ID in their names, and
// cluster-scoped objects that have its ID or that of the run in their names. It may not
// create objects that affect every client whatever their name (kinds.go).
package confine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Policy is what one scenario may name. ID and Run are required.
type Policy struct {
	// ID is the ID of the scenario, Run that of the run.
	ID, Run string
	// Namespaces are namespaces of other clients that the operator allows.
	Namespaces []string
}

// Check returns a framework.ErrForeign that says which object is not the scenario's and
// what to do, or nil.
func (p Policy) Check(resource client.Resource, request framework.Request) error {
	if err := p.check(resource, request); err != nil {
		return fmt.Errorf("%s: %w: %w", request, framework.ErrForeign, err)
	}
	return nil
}

// CheckInstalled returns a framework.ErrForeign if an object of the scenario, which
// install.Installer installs, would affect other clients.
func (p Policy) CheckInstalled(resource client.Resource, manifest map[string]any) error {
	if resource.Namespaced {
		return nil // install.Installer checks the namespace
	}
	if why := p.affectsAll(resource, manifest); why != "" {
		return fmt.Errorf("install %s: %w: %s: %s", resource.Resource, framework.ErrForeign, why, disposable)
	}
	return nil
}

// disposable is the advice for what only a server that ends with the run can have.
const disposable = "use a server that ends with the run, such as target envtest"

func (p Policy) check(resource client.Resource, request framework.Request) error {
	for _, part := range []string{request.Name, request.Namespace, request.Subresource, request.HTTP.ProxyPath} {
		if strings.Contains(part, "..") || part != request.HTTP.ProxyPath && strings.Contains(part, "/") {
			return fmt.Errorf("%q changes the URL path of the request: remove \"..\", and \"/\" from names", part)
		}
	}
	if resource.Namespaced {
		return p.checkNamespace(request.Namespace)
	}
	if isReview(request) {
		return nil // reviews are not stored
	}
	fields, err := fieldsOf(request)
	if err != nil {
		return err
	}
	if why := p.affectsAll(resource, fields); why != "" && fields != nil && !request.DryRun {
		return fmt.Errorf("%s: %s", why, disposable)
	}
	if install.IsAdmission(request.Kind) {
		if err := p.checkAdmission(request, fields); err != nil {
			return err
		}
	}
	switch request.Verb {
	case framework.VerbList, framework.VerbDeleteCollection:
		return p.checkSelector(request)
	case framework.VerbCreate:
		if request.Subresource == "" && request.DryRun {
			return nil // nothing is stored, and no existing object is read
		}
		if request.Subresource == "" {
			return p.checkCreated(fields)
		}
	}
	return p.checkName(request.Name)
}

// checkNamespace checks a namespace. The empty one means all, for a list.
func (p Policy) checkNamespace(name string) error {
	if runid.Has(name, p.ID) || name != "" && slices.Contains(p.Namespaces, name) {
		return nil
	}
	if name == "" {
		return errors.New("the request is for all namespaces: set the namespace $(namespace)")
	}
	return fmt.Errorf("namespace %[1]s does not belong to the scenario, whose namespaces have $(id) in their names: use one of these, or allow this one with --allow-foreign %[1]s", name)
}

// checkName checks the name of a cluster-scoped object.
func (p Policy) checkName(name string) error {
	if runid.Has(name, p.ID) || runid.Has(name, runid.Prefix(p.Run)) || slices.Contains(p.Namespaces, name) {
		return nil
	}
	return fmt.Errorf("object %q does not belong to the scenario: put the ID of the scenario in the name ($(id), in a Scenario), or %s", name, disposable)
}

// checkCreated checks the name in the body of a create.
func (p Policy) checkCreated(fields map[string]any) error {
	metadata, _ := fields["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name, _ = metadata["generateName"].(string)
	}
	if slices.Contains(p.Namespaces, name) {
		return fmt.Errorf("namespace %s belongs to other clients", name)
	}
	return p.checkName(name)
}

// checkSelector checks that a request for a collection of cluster-scoped objects selects
// the objects of the scenario.
func (p Policy) checkSelector(request framework.Request) error {
	for _, text := range request.HTTP.Query["labelSelector"] {
		selector, err := labels.Parse(text)
		if err != nil {
			continue
		}
		requirements, _ := selector.Requirements()
		for _, one := range requirements {
			if value, found := selector.RequiresExactMatch(one.Key()); found && runid.Has(value, p.ID) {
				return nil
			}
		}
	}
	if request.Verb == framework.VerbList {
		return nil // it changes nothing, and the objects have no content that is secret
	}
	return errors.New("the request is for all objects: give the objects of the scenario a label with the value $(id), and select them with the option labelSelector")
}

// isReview reports whether a request is for a kind of review, such as
// SubjectAccessReview.
func isReview(request framework.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}

// fieldsOf returns the body of a request that writes, as JSON fields.
func fieldsOf(request framework.Request) (map[string]any, error) {
	switch {
	case request.Verb == framework.VerbPatch && request.HTTP.RawBody != nil:
		return decodePatch(request.HTTP.RawBody)
	case request.HTTP.RawBody != nil:
		return decode(request.HTTP.RawBody)
	case request.HTTP.Patch != nil:
		return decodePatch(request.HTTP.Patch)
	}
	if request.Object == nil {
		return nil, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	return fields, nil
}
