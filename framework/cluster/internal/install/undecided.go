package install

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// The advice for what narrowing prevents.
const (
	adviceNamespace = "use $(namespace) or one of spec.namespaces, or set isolation: none"
	adviceName      = "put $(id) in the name, or set isolation: none"
)

// namespaceNameLabel is the label of each namespace that has its name.
const namespaceNameLabel = "kubernetes.io/metadata.name"

// CheckDecided returns a framework.ErrNarrowed if a webhook or policy of the scenario cannot
// decide about a Request because of what narrow adds to it, or because of a namespace of
// other clients that it names:
//
//   - it would match the request, which is not in a namespace of the scenario or, for a
//     cluster-scoped object, is not among its Requests and does not have its ID in the name;
//   - its rules match the request, but its parameters are in a namespace that is not the
//     scenario's;
//   - its rules match the request, and it is only for namespaces that are not the scenario's, and
//     no other webhook or policy is for the request.
//
// The error is a framework.ErrForeign if what is installed for the run cannot decide about a
// Namespace, because that would need a label.
func (i *Installer) CheckDecided(ctx context.Context, scope *Scope, request framework.Request) error {
	res, err := i.Client.Resources.Of(request.Kind)
	if err != nil || scope.Open || operations(request.Verb) == nil {
		return nil //nolint:nilerr // sending it is an error
	}
	if IsAdmission(request.Kind) {
		return scope.checkWritten(i.Client.Resources, res, request)
	}
	if err := i.checkProject(res, request); err != nil {
		return err
	}
	all := slices.DeleteFunc(scope.deciders(i.Client.Resources), func(d decider) bool { return !d.selects(res, request) })
	if len(all) == 0 {
		return nil
	}
	narrowed := func(d decider, why, advice string) error {
		return fmt.Errorf("%w: %s cannot decide about this request: %s: %s", framework.ErrNarrowed, d.name, why, advice)
	}
	for _, d := range all {
		if d.params != "" && !runid.Has(d.params, scope.ID) && !slices.Contains(i.Foreign, d.params) {
			return narrowed(d, fmt.Sprintf("its paramRef names the namespace %s, which does not belong to the scenario", d.params), adviceNamespace)
		}
	}
	x := scope.subjects(i.Client.Resources)
	if !res.Namespaced && res.GroupVersionResource != client.Namespaces() {
		if scope.FieldManager && request.Verb == framework.VerbDelete {
			return i.checkManaged(ctx, scope, client.Object{Resource: res, Name: request.Name})
		}
		if scope.FieldManager || x.namedBy(scope.ID, request) {
			return nil
		}
		return narrowed(all[0], "neither the object nor the user has $(id) in its name", adviceName)
	}
	outside, own, err := i.outside(ctx, x, res, request)
	if err != nil {
		return err
	}
	if outside != nil {
		at := slices.IndexFunc(all, func(d decider) bool { return d.selectsNamespace(outside) })
		if at < 0 {
			return nil
		}
		return narrowed(all[at], fmt.Sprintf("%s is not a namespace of the scenario", outside[namespaceNameLabel]), adviceNamespace)
	}
	if own {
		return neverOwn(all, x, narrowed)
	}
	return nil
}

// checkManaged returns a framework.ErrNarrowed if an object has no field manager by which webhooks and
// policies recognize its deletion.
func (i *Installer) checkManaged(ctx context.Context, scope *Scope, o client.Object) error {
	found, err := i.Client.Get(ctx, o)
	if err != nil || slices.ContainsFunc(found.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == scope.ID }) {
		return nil //nolint:nilerr // the API server's response to the request says more
	}
	return fmt.Errorf("%w: the API server notes no field manager for %s, so no webhook or policy would decide about its deletion: give it a label or another field", framework.ErrNarrowed, o)
}

// checkWritten returns a framework.ErrNarrowed if a policy of the scenario decides about a webhook
// configuration that Prepare narrows: the policy would see what the scenario did not write.
func (s *Scope) checkWritten(resources *client.Resources, res client.Resource, request framework.Request) error {
	if request.DryRun || request.Object == nil || request.Subresource != "" || strings.Contains(request.Kind.Kind, "Policy") {
		return nil // no policy decides about policies
	}
	if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object); err != nil || len(asList(fields["webhooks"])) == 0 {
		return nil //nolint:nilerr // sending it is an error
	}
	for _, d := range s.deciders(resources) {
		if d.policy && d.selects(res, request) {
			return fmt.Errorf("%w: %s would decide about a webhook configuration that is narrowed to the scenario, not about the one that the scenario has: send it with dryRun: true, or set isolation: none", framework.ErrNarrowed, d.name)
		}
	}
	return nil
}

// checkProject is CheckDecided for what is installed for the run.
func (i *Installer) checkProject(res client.Resource, request framework.Request) error {
	written := request.Verb == framework.VerbCreate || operations(request.Verb)[0] == "UPDATE" || request.Verb == framework.VerbApply
	if !i.Shared || i.project == nil || res.GroupVersionResource != client.Namespaces() || request.Subresource != "" || !written {
		return nil
	}
	for _, d := range i.project.deciders(i.Client.Resources) {
		if d.selects(res, request) && !d.forNamespaces() {
			return fmt.Errorf("%w: %s is installed for the run, and is narrowed by labels that a Namespace of a request does not have: use a server that ends with the run, such as target envtest", framework.ErrForeign, d.name)
		}
	}
	return nil
}

// forNamespaces reports whether every rule is for Namespaces only.
func (d decider) forNamespaces() bool {
	rules := append(asList(d.matches[0]["rules"]), asList(d.matches[0]["resourceRules"])...)
	return !slices.ContainsFunc(rules, func(item any) bool { return !forNamespaces(cloneMap(item)) })
}

// neverOwn returns an error if none of the deciders can match a namespace of the scenario.
func neverOwn(all []decider, x subjects, narrowed func(d decider, why, advice string) error) error {
	var first error
	for _, d := range all {
		why := d.onlyOthers(x)
		if why == "" {
			return nil
		}
		if first == nil {
			first = narrowed(d, fmt.Sprintf("its namespaceSelector requires %q, and no namespace of the scenario matches", why), adviceNamespace)
		}
	}
	return first
}

// selectsNamespace reports whether the namespaceSelectors match labels.
func (d decider) selectsNamespace(of labels.Set) bool {
	for _, match := range d.matches {
		if !selectorOf(match["namespaceSelector"]).Matches(of) {
			return false
		}
	}
	return true
}

// onlyOthers returns a requirement of a namespaceSelector that holds for no namespace of a scenario:
// the names of others. Otherwise it returns "".
func (d decider) onlyOthers(x subjects) string {
	for _, match := range d.matches {
		requirements, _ := selectorOf(match["namespaceSelector"]).Requirements()
		for _, one := range requirements {
			names := one.Key() == namespaceNameLabel && one.Values().Len() > 0 && one.Matches(labels.Set{namespaceNameLabel: one.Values().UnsortedList()[0]})
			if names && !x.unnamed && !slices.ContainsFunc(one.Values().UnsortedList(), x.isNamespace) {
				return one.String()
			}
		}
	}
	return ""
}

// isNamespace reports whether a selector of narrow matches the namespace of that name.
func (x subjects) isNamespace(name string) bool {
	return slices.Contains(x.namespaces, name) || slices.Contains(x.objects, name)
}

// outside returns the labels of the namespace of a Request if the namespace does not belong to the
// scenario. Own is true if it does. For a Request for a Namespace, it is that Namespace. If the
// namespace does not exist, outside returns nil and false.
func (i *Installer) outside(ctx context.Context, x subjects, res client.Resource, request framework.Request) (of labels.Set, own bool, err error) {
	name := request.Namespace
	if !res.Namespaced {
		name, _ = namesOf(request)
	}
	if slices.Contains(x.namespaces, name) || !res.Namespaced && (x.unnamed || slices.Contains(x.objects, name)) {
		return nil, true, nil
	}
	found, err := i.Client.Get(ctx, client.Namespace(name))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find out whether the configurations of the scenario decide about %s: %w", request, err)
	}
	return found.GetLabels(), false, nil
}

// namedBy reports whether the condition of narrow holds, by a name, for a Request for a cluster-scoped
// object. The objects that a deletecollection is for are not known.
func (x subjects) namedBy(id string, request framework.Request) bool {
	pattern, own := regexp.MustCompile(x.pattern(id)), regexp.MustCompile(runid.Pattern(id))
	name, generated := namesOf(request)
	return request.Verb == framework.VerbDeleteCollection || pattern.MatchString(name) || pattern.MatchString(generated) ||
		request.User != nil && own.MatchString(request.User.Name)
}
