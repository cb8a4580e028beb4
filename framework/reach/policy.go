package reach

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/client-go/informers"
)

// exempt reports whether policies never apply to a resource. This is so for policies and their
// bindings (k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go), and for reviews that
// are not stored (k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion/resources.go).
func exempt(resource schema.GroupResource) bool {
	return isReview(resource) || resource.Group == group && strings.Contains(resource.Resource, "admissionpolic")
}

// isReview reports whether a resource is of reviews that are not stored.
func isReview(resource schema.GroupResource) bool {
	return strings.HasSuffix(resource.Resource, "reviews") && (resource.Group == "authentication.k8s.io" || resource.Group == "authorization.k8s.io")
}

// matchPolicy reports whether the rules and selectors of a policy match. If they do not, the Finding says
// why; otherwise it only has the name.
func (e *explanation) matchPolicy(p *policy) (Finding, matched, bool) {
	f := Finding{Kind: p.kind, Name: p.name}
	attributes := e.attributes(p.mutates())
	if p.mutates() && attributes.GetOperation() == admission.Delete {
		return f.none(ReasonOperation, "it does not apply: a delete has no object that it could mutate"), matched{}, false
	}
	if exempt(attributes.GetResource().GroupResource()) {
		return f.none(ReasonExempt, "it does not apply: Kubernetes exempts %s from policies", attributes.GetResource().Resource), matched{}, false
	}
	if p.spec.MatchConstraints == nil {
		return f.failed(p.ignores(), errors.New("the policy has no matchConstraints")), matched{}, false
	}
	found, why := e.match(criteriaOf(p.spec.MatchConstraints), attributes)
	if why != nil {
		return why.as(f, "it does not apply: ", p.ignores()), matched{}, false
	}
	return f, found, true
}

// matchBinding reports whether the rules and selectors of a binding match. If they do not, the Finding
// says why.
func (e *explanation) matchBinding(p *policy, b *binding) (Finding, bool) {
	f := Finding{Kind: p.kind, Name: p.name, Binding: b.name}
	if b.spec.MatchResources == nil {
		return f, true
	}
	_, why := e.match(criteriaOf(b.spec.MatchResources), e.attributes(p.mutates()))
	if why == nil {
		return f, true
	}
	why.reason = ReasonBindingMatch
	return why.as(f, "it does not apply: matchResources of the binding: ", p.ignores()), false
}

// policy returns what a policy does for the request with one of its bindings.
func (e *explanation) policy(p *policy, b *binding) Finding {
	f, found, matches := e.matchPolicy(p)
	f.Binding = b.name
	if !matches {
		return f
	}
	attributes := e.attributes(p.mutates())
	informer, scope, why := e.params(p)
	if why != nil {
		return why.as(f, "", p.ignores())
	}
	if unmatched, matches := e.matchBinding(p, b); !matches {
		return unmatched
	}
	params, err := collectParams(p.spec.ParamKind, informer, scope, b.spec.ParamRef, attributes.GetNamespace())
	if err != nil {
		return f.failed(p.ignores(), err)
	}
	if len(params) == 0 {
		return f.none(ReasonNoParams, "no params were found, and parameterNotFoundAction is Allow")
	}
	return e.evaluate(p, b, f, found, params)
}

// collectParams is generic.CollectParams, which takes more in Kubernetes 1.37: a client and a mapper, by
// which it looks for what its cache does not have. Here, the cache has everything.
func collectParams(kind *admissionregistrationv1.ParamKind, informer informers.GenericInformer, scope meta.RESTScope, ref *admissionregistrationv1.ParamRef, namespace string) ([]runtime.Object, error) {
	collect := reflect.ValueOf(generic.CollectParams)
	given := []any{kind, informer, scope, ref, namespace}
	arguments := make([]reflect.Value, collect.Type().NumIn())
	for i := range arguments {
		arguments[i] = reflect.Zero(collect.Type().In(i))
		if i < len(given) && given[i] != nil {
			arguments[i] = reflect.ValueOf(given[i])
		}
	}
	results := collect.Call(arguments)
	params, _ := results[0].Interface().([]runtime.Object)
	err, _ := results[1].Interface().(error)
	return params, err
}

// params returns the params of the kind of a policy.
func (e *explanation) params(p *policy) (informers.GenericInformer, meta.RESTScope, *whyNot) {
	if p.spec.ParamKind == nil {
		return nil, nil, nil
	}
	kind := schema.FromAPIVersionAndKind(p.spec.ParamKind.APIVersion, p.spec.ParamKind.Kind)
	params, err := e.cluster.Params(e.ctx, kind)
	if err != nil {
		return nil, nil, &whyNot{unknown: fmt.Sprintf("the params are not known: %v", err)}
	}
	if !params.Served {
		return nil, nil, &whyNot{err: fmt.Errorf("the API server does not serve the paramKind, %s %s", kind.GroupVersion(), kind.Kind)}
	}
	informer, err := newParamInformer(kind, params.Objects)
	if err != nil {
		return nil, nil, &whyNot{unknown: fmt.Sprintf("the params cannot be read: %v", err)}
	}
	if params.Namespaced {
		return informer, meta.RESTScopeNamespace, nil
	}
	return informer, meta.RESTScopeRoot, nil
}

// evaluate evaluates the match conditions and validations for each of the params. If the results
// differ, it returns the Finding with the largest weight.
func (e *explanation) evaluate(p *policy, b *binding, f Finding, found matched, params []runtime.Object) Finding {
	attributes := e.attributes(p.mutates())
	if p.mutates() && !p.ignores() && len(p.spec.MatchConditions) == 0 {
		return f.with(EffectMutates, "", "its mutations are evaluated")
	}
	in, why := e.input(attributes, found)
	if why != nil {
		return why.as(f, "", p.ignores())
	}
	var best Finding
	var invalid []int
	for _, param := range params {
		one := e.evaluateOne(p, b, f, in, param)
		invalid = append(invalid, one.Validations...)
		if best.Effect == "" || weight(one) > weight(best) {
			best = one
		}
	}
	slices.Sort(invalid)
	best.Validations = slices.Compact(invalid)
	return best
}

// weight orders the Findings for several params: the strongest effect has the largest weight.
func weight(f Finding) int {
	if f.Reason == ReasonValid {
		return 1
	}
	return slices.Index([]Effect{EffectNone, EffectNone, EffectUnknown, EffectMutates, EffectInvalid, EffectRefused}, f.Effect)
}

func (e *explanation) evaluateOne(p *policy, b *binding, f Finding, in input, param runtime.Object) Finding {
	if why := p.compiled.conditions.match(in, param); why != nil {
		return why.as(f, "it does not apply: ", p.ignores())
	}
	if p.mutates() {
		if p.ignores() {
			if err := p.compiled.mutate(in, param, e.lookup); err != nil {
				return f.failed(true, err)
			}
		}
		return f.with(EffectMutates, "", "its mutations are evaluated")
	}
	values, why := p.compiled.validate(in, param, e.lookup)
	if why != nil {
		return why.as(f, "", p.ignores())
	}
	var ignored error
	var texts []string
	for i, v := range values {
		switch {
		case v.err != nil && p.ignores():
			ignored = errors.Join(ignored, fmt.Errorf("validations[%d]: %w", i, v.err))
		case v.err != nil:
			f.Validations, texts = append(f.Validations, i), append(texts, fmt.Sprintf("validations[%d] fails with an error: %v", i, v.err))
		case !v.holds:
			f.Validations, texts = append(f.Validations, i), append(texts, fmt.Sprintf("validations[%d] is false: %s", i, p.spec.Validations[i].Expression))
		}
	}
	switch {
	case len(texts) > 0:
		return f.with(EffectInvalid, "", "%s (validationActions %s)", strings.Join(texts, "; "), strings.Trim(fmt.Sprint(b.spec.ValidationActions), "[]"))
	case ignored != nil:
		return f.failed(true, ignored)
	case len(values) == 1:
		return f.none(ReasonValid, "its validation is true: %s", p.spec.Validations[0].Expression)
	case len(values) == 0:
		return f.none(ReasonValid, "it applies, and it has no validations")
	default:
		return f.none(ReasonValid, "all its %d validations are true", len(values))
	}
}
