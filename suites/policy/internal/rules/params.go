package rules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// param is an object that a binding of a policy names as its param.
type param struct {
	policy  Policy
	binding binding
	object  unstructured.Unstructured
}

// params returns the params that bindings of ValidatingAdmissionPolicies name, and that the Subject has.
func (s Subject) params() []param {
	var found []param
	for _, p := range s.List() {
		for _, b := range s.Bindings() {
			if p.Mutating() || !p.isBound(b) || b.spec.ParamRef == nil || p.spec.ParamKind == nil {
				continue
			}
			for _, m := range slices.Concat(s.Given, s.Policies) {
				u := unstructured.Unstructured{Object: m.Object}
				if u.GetAPIVersion() == p.spec.ParamKind.APIVersion && u.GetKind() == p.spec.ParamKind.Kind && u.GetName() == b.spec.ParamRef.Name {
					found = append(found, param{p, b, u})
				}
			}
		}
	}
	return found
}

// shapePrefix begins the names of the probes and of the params for the shapes of params.
const shapePrefix = probePrefix + "shape-"

// shapes installs variants of each param, each with a binding to a copy of the policy that only warns of errors.
func (b *bench) shapes(ctx context.Context) (installed []map[string]any, err error) {
	b.observed.Shapes = map[string]string{}
	install := func(manifest map[string]any) error {
		installed = append(installed, manifest)
		return b.probes.Install(ctx, manifest, nil)
	}
	for i, each := range b.subject.params() {
		probe := fmt.Sprintf("%s%d", shapePrefix, i)
		err := install(each.policy.probe(probe, func(_ int, validation *admissionregistrationv1.Validation) {
			validation.Expression += " ? true : true" // true, or an error
		}))
		if err != nil {
			return nil, fmt.Errorf("install a copy of %s %s: %w", validatingPolicy, each.policy.GetName(), err)
		}
		for n, shape := range variantsOf(each.object.Object) {
			varied := unstructured.Unstructured{Object: shape.object}
			varied.SetName(fmt.Sprintf("%s%d-%d", shapePrefix, i, n))
			varied.SetLabels(nil) // a selector of another binding must not find it
			switch err := b.probes.Install(ctx, varied.Object, nil); {
			case errors.As(err, new(apierrors.APIStatus)):
				continue // the API server does not accept it, so no policy meets it
			case err != nil:
				return nil, fmt.Errorf("install a copy of the param %s: %w", each.object.GetName(), err)
			}
			shaped := binding{each.binding.Unstructured, *each.binding.spec.DeepCopy()}
			shaped.spec.ParamRef.Name = varied.GetName()
			if err := install(shaped.onlyWarning(varied.GetName(), probe)); err != nil {
				return nil, fmt.Errorf("install a copy of %s %s: %w", each.binding.GetKind(), each.binding.GetName(), err)
			}
			b.observed.Shapes[varied.GetName()] = fmt.Sprintf("%s %s %s", each.object.GetKind(), each.object.GetName(), shape.change)
		}
	}
	return installed, nil
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
	installed, err := b.shapes(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(b.server.WaitUntilEffective(ctx, installed), b.probes.WaitForParams(ctx)); err != nil {
		return err
	}
	if err := b.sendAgain(ctx, Shapes, "with other params"); err != nil {
		return err
	}
	if err := b.reordered(ctx, all); err != nil {
		return err
	}
	for _, each := range all {
		object := b.addressed(each.object.Object)
		b.do(ctx, framework.Delete(object))
		if gone := b.do(ctx, framework.Request{Verb: framework.VerbGet, Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName()}); gone.Status.Code != http.StatusNotFound {
			return b.err // a policy that guards its param
		}
	}
	if err := b.sandbox.WaitForParams(ctx); err != nil {
		return err
	}
	if err := b.sendAgain(ctx, Paramless, "without the params"); err != nil {
		return err
	}
	var ending []*Case
	for _, c := range b.observed.Of(Finalizers, Controller) {
		if slices.ContainsFunc(all, func(each param) bool {
			return c.Request.Namespace != "" && b.addressed(each.object.Object).GetNamespace() == c.Request.Namespace
		}) {
			copied := *c
			copied.Group, copied.What, copied.After, copied.ByOperator = Ending, c.What+", after the params in its namespace were deleted", framework.Result{}, nil
			ending = append(ending, &copied)
		}
	}
	b.observed.Cases = append(b.observed.Cases, ending...)
	return b.send(ctx, ending, after)
}

// reordered sends samples with the lists of the params in reverse order.
func (b *bench) reordered(ctx context.Context, all []param) error {
	changed := false
	for _, each := range all {
		kept := b.get(ctx, each.object.GroupVersionKind(), b.addressed(each.object.Object), "")
		if kept == nil {
			continue
		}
		other := kept.DeepCopy()
		reversed(other.Object)
		other.Object["metadata"] = kept.Object["metadata"]
		changed = !reflect.DeepEqual(kept, other) && b.object(ctx, framework.Update(kept, other)) != nil || changed
	}
	if !changed {
		return b.err
	}
	if err := b.sandbox.WaitForParams(ctx); err != nil {
		return err
	}
	return b.sendAgain(ctx, Reordered, "with the lists of the params in reverse order")
}

// aList matches strings that are a list.
var aList = regexp.MustCompile(`^[\w./:@*-]+(,[\w./:@*-]+)+$`)

// reversed returns a value, which it changes, with each list in reverse order.
func reversed(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, each := range value {
			value[name] = reversed(each)
		}
	case []any:
		for i, each := range value {
			value[i] = reversed(each)
		}
		slices.Reverse(value)
	case string:
		if aList.MatchString(value) {
			parts := strings.Split(value, ",")
			slices.Reverse(parts)
			return strings.Join(parts, ",")
		}
	}
	return value
}

// Observing returns the bindings of ValidatingAdmissionPolicies without the action Deny.
func (s Subject) Observing() []binding {
	return slices.DeleteFunc(s.Bindings(), func(b binding) bool { return b.GetKind() != validatingPolicy+"Binding" || b.denies() })
}

// onlyObserving sends the samples only with the bindings that lack the action Deny: a refusal names only one
// of several bindings that refuse.
func (b *bench) onlyObserving(ctx context.Context) error {
	if len(b.subject.Observing()) == 0 {
		return nil
	}
	if err := b.only(ctx, func(each binding) bool { return !each.denies() }); err != nil {
		return err
	}
	return b.sendAgain(ctx, Observed, "with only the bindings without the action Deny")
}

// sendAgain sends the creation of each sample and fix again, as requests of another group.
func (b *bench) sendAgain(ctx context.Context, group Group, change string) error {
	cases := b.copies(group, change)
	b.observed.Cases = append(b.observed.Cases, cases...)
	return b.send(ctx, cases, after)
}

// copies returns copies of the creations of samples and fixes, which are their Controls.
func (b *bench) copies(group Group, change string) []*Case {
	var cases []*Case
	for _, c := range b.observed.Of(Samples, Fixes) {
		copied := *c
		copied.Group, copied.What, copied.After, copied.Control = group, c.What+", "+change, framework.Result{}, c
		cases = append(cases, &copied)
	}
	return cases
}
