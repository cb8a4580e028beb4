package rules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// param is an object that a binding of a policy names as its param.
type param struct {
	policy  Policy
	binding unstructured.Unstructured
	object  unstructured.Unstructured
}

// Params reports whether a ValidatingAdmissionPolicy has a param that its binding names and the Subject has.
func (s Subject) Params() bool { return len(s.params()) > 0 }

// params returns the params that bindings of ValidatingAdmissionPolicies name, and that the Subject has.
func (s Subject) params() []param {
	var found []param
	for _, p := range s.List() {
		for _, b := range s.Bindings() {
			name, _, _ := unstructured.NestedString(b.Object, "spec", "paramRef", "name")
			if p.Mutating() || !p.isBound(b) || name == "" || p.spec.ParamKind == nil {
				continue
			}
			for _, m := range slices.Concat(s.Given, s.Policies) {
				u := unstructured.Unstructured{Object: m.Object}
				if u.GetAPIVersion() == p.spec.ParamKind.APIVersion && u.GetKind() == p.spec.ParamKind.Kind && u.GetName() == name {
					found = append(found, param{p, b, u})
				}
			}
		}
	}
	return found
}

// shapePrefix begins the names of the probes and of the params for the shapes of params.
const shapePrefix = probePrefix + "shape-"

// mostShapes limits the variants of one param: their warnings must fit into a response.
const mostShapes = 40

// shapes installs variants of each param, each with a binding to a copy of the policy that only warns of errors. It
// returns what each binding is about.
func (b *bench) shapes(ctx context.Context) (map[string]string, []map[string]any, error) {
	about := map[string]string{}
	var installed []map[string]any
	install := func(manifest map[string]any) error {
		installed = append(installed, manifest)
		return b.probes.Install(ctx, manifest, nil)
	}
	for i, each := range b.subject.params() {
		probe := each.policy.probe(fmt.Sprintf("%s%d", shapePrefix, i), func(_ int, validation map[string]any) {
			validation["expression"] = fmt.Sprintf("%v ? true : true", validation["expression"]) // true, or an error
		})
		if err := install(probe.Object); err != nil {
			return nil, nil, fmt.Errorf("install a copy of %s %s: %w", validatingPolicy, each.policy.GetName(), err)
		}
		for n, shape := range variantsOf(each.object.Object) {
			varied := unstructured.Unstructured{Object: shape.object}
			varied.SetName(fmt.Sprintf("%s%d-%d", shapePrefix, i, n))
			varied.SetLabels(nil) // a selector of another binding must not find it
			switch err := b.probes.Install(ctx, varied.Object, nil); {
			case errors.As(err, new(apierrors.APIStatus)):
				continue // the API server does not accept it, so no policy meets it
			case err != nil:
				return nil, nil, fmt.Errorf("install a copy of the param %s: %w", each.object.GetName(), err)
			}
			binding := onlyWarning(each.binding, varied.GetName(), probe.GetName())
			_ = unstructured.SetNestedField(binding.Object, varied.GetName(), "spec", "paramRef", "name") // it has one
			if err := install(binding.Object); err != nil {
				return nil, nil, fmt.Errorf("install a copy of %s %s: %w", each.binding.GetKind(), each.binding.GetName(), err)
			}
			about[binding.GetName()] = fmt.Sprintf("%s %s %s", each.object.GetKind(), each.object.GetName(), shape.change)
		}
	}
	return about, installed, nil
}

// variantsOf returns an object without each of its values, and with each list and map empty.
func variantsOf(object map[string]any) []less {
	var all []less
	for _, path := range vary.Paths(object, nil) {
		if !slices.Equal(path, cel.Path{"metadata"}) { // it has the name
			all = append(all, lessOf(object, path)...)
		}
	}
	return all[:min(len(all), mostShapes)]
}

// withoutParams sends samples with other params, and then samples and removals of finalizers without the params.
func (b *bench) withoutParams(ctx context.Context) error {
	all := b.subject.params()
	if len(all) == 0 {
		return nil
	}
	about, installed, err := b.shapes(ctx)
	if err != nil {
		return err
	}
	b.observed.Shapes = about
	if err := errors.Join(b.server.WaitUntilEffective(ctx, installed), b.probes.WaitForParams(ctx)); err != nil {
		return err
	}
	if err := b.again(ctx, Shapes, "with other params"); err != nil {
		return err
	}
	for _, each := range all {
		if gone, err := b.deleted(ctx, each.object); err != nil || !gone {
			return err // a policy that guards its param
		}
	}
	if err := b.sandbox.WaitForParams(ctx); err != nil {
		return err
	}
	return b.again(ctx, Paramless, "without the params")
}

// deleted deletes a param, and reports whether it is gone.
func (b *bench) deleted(ctx context.Context, object unstructured.Unstructured) (bool, error) {
	request := framework.Request{Verb: framework.VerbDelete, Kind: object.GroupVersionKind(), Namespace: b.addressed(object.Object).GetNamespace(), Name: object.GetName()}
	if _, err := b.sandbox.Send(ctx, request); err != nil {
		return false, fmt.Errorf("delete the param %s: %w", object.GetName(), err)
	}
	request.Verb = framework.VerbGet
	result, err := b.sandbox.Send(ctx, request)
	if err != nil {
		return false, fmt.Errorf("get the param %s: %w", object.GetName(), err)
	}
	return result.Status.Code == http.StatusNotFound, nil
}

// Observing returns the bindings of ValidatingAdmissionPolicies without the action Deny.
func (s Subject) Observing() []unstructured.Unstructured {
	return slices.DeleteFunc(s.Bindings(), func(b unstructured.Unstructured) bool { return b.GetKind() != validatingPolicy+"Binding" || denies(b) })
}

// denies reports whether a binding has the action Deny.
func denies(b unstructured.Unstructured) bool {
	set, _, _ := unstructured.NestedStringSlice(b.Object, "spec", "validationActions")
	return slices.Contains(set, "Deny")
}

// onlyObserving sends the samples only with the bindings that lack the action Deny: a refusal names only one
// of several bindings that refuse.
func (b *bench) onlyObserving(ctx context.Context) error {
	if len(b.subject.Observing()) == 0 {
		return nil
	}
	if err := b.only(ctx, func(binding unstructured.Unstructured) bool { return !denies(binding) }); err != nil {
		return err
	}
	return b.again(ctx, Observed, "with only the bindings without the action Deny")
}

// again sends the creation of each sample and fix again, as requests of another group.
func (b *bench) again(ctx context.Context, group Group, change string) error {
	var cases []*Case
	for _, c := range b.observed.Of(Samples, Fixes) {
		copied := *c
		copied.Group, copied.What, copied.After, copied.Control = group, c.What+", "+change, framework.Result{}, c
		cases = append(cases, &copied)
	}
	b.observed.Cases = append(b.observed.Cases, cases...)
	return b.send(ctx, cases, after)
}
