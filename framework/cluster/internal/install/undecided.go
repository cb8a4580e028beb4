package install

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
//     cluster-scoped object, does not have its ID in the name (or its label, if the scope is Labelled);
//   - its rules match the request, but its parameters are in a namespace that is not the
//     scenario's;
//   - its rules match the request, and it is only for namespaces that are not the scenario's, and
//     no other webhook or policy is for the request.
func (i *Installer) CheckDecided(ctx context.Context, scope *Scope, request framework.Request) error {
	res, err := i.Client.Resources.Of(request.Kind)
	if err != nil || scope.Open || operations(request.Verb) == nil || IsAdmission(request.Kind) {
		return nil //nolint:nilerr // sending it is an error
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
	if !res.Namespaced && res.GroupVersionResource != client.Namespaces() {
		if namesScenario(scope.ID, request) {
			return nil
		}
		if own, err := i.labelled(ctx, scope, res, request); own || err != nil {
			return err
		}
		return narrowed(all[0], "neither the object nor the user has $(id) in its name", adviceName)
	}
	outside, own, err := i.outside(ctx, scope, res, request)
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
		return neverOwn(all, scope.ID, narrowed)
	}
	return nil
}

// neverOwn returns an error if none of the deciders can match a namespace of the scenario.
func neverOwn(all []decider, id string, narrowed func(d decider, why, advice string) error) error {
	var first error
	for _, d := range all {
		why := d.onlyOthers(id)
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

// onlyOthers returns a requirement of a namespaceSelector that holds for no namespace of a
// scenario: another name, or another value of the label of the scenario. Otherwise it
// returns "".
func (d decider) onlyOthers(id string) string {
	for _, match := range d.matches {
		requirements, _ := selectorOf(match["namespaceSelector"]).Requirements()
		for _, one := range requirements {
			names := one.Key() == namespaceNameLabel && one.Values().Len() > 0 && one.Matches(labels.Set{namespaceNameLabel: one.Values().UnsortedList()[0]})
			ofOthers := names && !slices.ContainsFunc(one.Values().UnsortedList(), func(name string) bool { return runid.Has(name, id) })
			if ofOthers || one.Key() == ScenarioLabel && !one.Matches(labels.Set{ScenarioLabel: id}) {
				return one.String()
			}
		}
	}
	return ""
}

// outside returns the labels of the namespace of a Request if the namespace does not belong to the
// scenario. Own is true if it does. For a Request for a Namespace, it is that Namespace. If the
// namespace does not exist, outside returns nil and false.
func (i *Installer) outside(ctx context.Context, scope *Scope, res client.Resource, request framework.Request) (of labels.Set, own bool, err error) {
	name := request.Namespace
	if !res.Namespaced {
		if name = request.Name; request.Verb == framework.VerbCreate && request.Subresource == "" {
			return nil, true, nil // Prepare adds the label
		}
	}
	if runid.Has(name, scope.ID) {
		return nil, true, nil
	}
	found, err := i.Client.Get(ctx, client.Namespace(name))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find out whether the configurations of the scenario decide about %s: %w", request, err)
	}
	if found.GetLabels()[ScenarioLabel] == scope.ID {
		return nil, true, nil
	}
	return found.GetLabels(), false, nil
}

// labelled reports whether the scope is Labelled and the object of a cluster-scoped Request has the
// label of the scenario: Prepare adds it to what a Request creates.
func (i *Installer) labelled(ctx context.Context, scope *Scope, res client.Resource, request framework.Request) (bool, error) {
	if !scope.Labelled {
		return false, nil
	}
	if request.Verb == framework.VerbCreate {
		return request.Object != nil && request.HTTP.RawBody == nil && request.Subresource == "" && !isReview(request), nil
	}
	found, err := i.Client.Get(ctx, client.Object{Resource: res, Name: request.Name})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whether the configurations of the scenario decide about %s: %w", request, err)
	}
	return found.GetLabels()[ScenarioLabel] == scope.ID, nil
}

// namesScenario reports whether scenarioCondition holds, by a name, for a Request for a cluster-scoped
// object. The objects that a deletecollection is for are not known.
func namesScenario(id string, request framework.Request) bool {
	pattern := regexp.MustCompile(runid.Pattern(id))
	names := []string{request.Name}
	if request.User != nil {
		names = append(names, request.User.Name)
	}
	if request.Object != nil {
		if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object); err == nil {
			object := unstructured.Unstructured{Object: fields}
			names = append(names, object.GetName(), object.GetGenerateName())
		}
	}
	return request.Verb == framework.VerbDeleteCollection || slices.ContainsFunc(names, pattern.MatchString)
}
