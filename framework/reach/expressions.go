package reach

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// conditions are compiled match conditions.
type conditions struct {
	list     []admissionregistrationv1.MatchCondition
	compiled cel.ConditionEvaluator
}

// expressions are the compiled expressions of a policy.
type expressions struct {
	conditions  *conditions
	validations cel.ConditionEvaluator
	mutations   []patch.Patcher
}

// newCompiler returns a compiler with the environment of an API server.
func newCompiler() (*cel.CompositedCompiler, error) {
	var env *environment.EnvSet
	// Kubernetes 1.34 has this function with one more parameter.
	switch base := any(environment.MustBaseEnvSet).(type) {
	case func(*version.Version) *environment.EnvSet:
		env = base(environment.DefaultCompatibilityVersion())
	case func(*version.Version, bool) *environment.EnvSet:
		env = base(environment.DefaultCompatibilityVersion(), true)
	default:
		return nil, errors.New("compile expressions: package environment of k8s.io/apiserver is not of a supported version")
	}
	return cel.NewCompositedCompiler(env)
}

// compileConditions compiles the match conditions of a webhook, which have no variables: webhooks can share the compiler.
func compileConditions(list []admissionregistrationv1.MatchCondition, newCompiler func() (*cel.CompositedCompiler, error)) (*conditions, error) {
	if len(list) == 0 {
		return &conditions{}, nil
	}
	compiler, err := newCompiler()
	if err != nil {
		return nil, err
	}
	return conditionsWith(compiler, list, cel.OptionalVariableDeclarations{HasAuthorizer: true}), nil
}

func conditionsWith(compiler *cel.CompositedCompiler, list []admissionregistrationv1.MatchCondition, variables cel.OptionalVariableDeclarations) *conditions {
	accessors := make([]cel.ExpressionAccessor, 0, len(list))
	for i := range list {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&list[i]))
	}
	return &conditions{list: list, compiled: compiler.CompileCondition(accessors, variables, environment.StoredExpressions)}
}

func compilePolicy(spec policySpec) (*expressions, error) {
	compiler, err := newCompiler()
	if err != nil {
		return nil, err
	}
	variables := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	named := make([]cel.NamedExpressionAccessor, 0, len(spec.Variables))
	for _, v := range spec.Variables {
		named = append(named, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(named, variables, environment.StoredExpressions)
	accessors := make([]cel.ExpressionAccessor, 0, len(spec.Validations))
	for _, v := range spec.Validations {
		accessors = append(accessors, &validating.ValidationCondition{Expression: v.Expression})
	}
	return &expressions{
		conditions:  conditionsWith(compiler, spec.MatchConditions, variables),
		validations: compiler.CompileCondition(accessors, variables, environment.StoredExpressions),
		mutations:   compileMutations(compiler, spec.Mutations, variables),
	}, nil
}

// forMutations returns the variables with the types of patches.
func forMutations(variables cel.OptionalVariableDeclarations) cel.OptionalVariableDeclarations {
	variables.HasPatchTypes = true
	if strict := reflect.ValueOf(&variables).Elem().FieldByName("StrictCost"); strict.IsValid() { // Kubernetes 1.34 has it, and needs it
		strict.SetBool(true)
	}
	return variables
}

// mutationOf returns the field, the expression and the patcher of a mutation, or no expression if the API server knows more than this version
// of k8s.io/apiserver.
func mutationOf(m admissionregistrationv1beta1.Mutation) (field string, expression cel.ExpressionAccessor, patcher func(cel.MutatingEvaluator) patch.Patcher) {
	switch {
	case m.JSONPatch != nil:
		return "jsonPatch", &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, patch.NewJSONPatcher
	case m.ApplyConfiguration != nil:
		return "applyConfiguration", &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, patch.NewApplyConfigurationPatcher
	default:
		return "", nil, nil
	}
}

// compileMutations returns no patchers if a mutation is not known or does not compile.
func compileMutations(compiler *cel.CompositedCompiler, mutations []admissionregistrationv1beta1.Mutation, variables cel.OptionalVariableDeclarations) []patch.Patcher {
	patchers := make([]patch.Patcher, 0, len(mutations))
	for _, m := range mutations {
		_, expression, patcher := mutationOf(m)
		if expression == nil {
			return nil
		}
		compiled := compiler.CompileCondition([]cel.ExpressionAccessor{expression}, forMutations(variables), environment.StoredExpressions)
		if len(compiled.CompilationErrors()) > 0 {
			return nil
		}
		patchers = append(patchers, patcher(withVariables{compiled}))
	}
	return patchers
}

// withVariables evaluates one expression, with the variables of its policy. The MutatingEvaluator of Kubernetes leaves them to its
// caller, and each minor has another function for that.
type withVariables struct{ cel.ConditionEvaluator }

// ForInput implements cel.MutatingEvaluator.
//
//nolint:revive // which has so many arguments
func (e withVariables) ForInput(ctx context.Context, attributes *admission.VersionedAttributes, request *admissionv1.AdmissionRequest, variables cel.OptionalVariableBindings, ns *corev1.Namespace, budget int64) (cel.EvaluationResult, int64, error) {
	results, budget, err := e.ConditionEvaluator.ForInput(ctx, attributes, request, variables, ns, budget)
	if err != nil {
		return cel.EvaluationResult{}, budget, err
	}
	return results[0], budget, nil
}

// input has the values that expressions can read.
type input struct {
	ctx context.Context //nolint:containedctx // it lives as long as the call of Explain
	*admission.VersionedAttributes
	matched matched
	old     map[string]any
	// asked is set to true when an expression calls the authorizer. The answer of the authorizer is
	// not known here.
	asked *bool
}

// input returns the request in the version that was matched.
func (e *explanation) input(attributes admission.Attributes, found matched) (input, *whyNot) {
	if e.request.NotKnown != "" {
		return input{}, &whyNot{unknown: "the object is not known, which expressions read: " + e.request.NotKnown}
	}
	object, old := e.request.object(attributes == e.mutating), e.request.OldObject
	if found.kind != e.request.Kind {
		for _, fields := range []*map[string]any{&object, &old} {
			if *fields == nil {
				continue
			}
			converted, err := e.cluster.Convert(e.ctx, *fields, found.kind)
			if err != nil {
				return input{}, &whyNot{unknown: fmt.Sprintf("the object is not known in version %s, which expressions read: %v", found.kind.GroupVersion(), err)}
			}
			*fields = converted
		}
	}
	all, err := versioned(attributes, found.kind, object, old)
	if err != nil {
		return input{}, &whyNot{unknown: fmt.Sprintf("the object is not known as %s, which expressions read: %v", found.kind, err)}
	}
	return input{ctx: e.ctx, VersionedAttributes: all, matched: found, old: old, asked: new(bool)}, nil
}

// errNotAsked is the error that Authorize returns.
var errNotAsked = errors.New("the API server's authorizer was not asked")

// Authorize implements authorizer.Authorizer. It records the call and returns an error.
func (in input) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	*in.asked = true
	return authorizer.DecisionNoOpinion, "", errNotAsked
}

// reliable returns why the results of expressions cannot be relied on, or nil.
func (in input) reliable(compiled cel.ConditionEvaluator) *whyNot {
	if errs := compiled.CompilationErrors(); len(errs) > 0 {
		return &whyNot{unknown: fmt.Sprintf("admissiontest cannot compile an expression that the API server has: %v", errs[0])}
	}
	if *in.asked {
		return &whyNot{unknown: "an expression asks the authorizer of the API server"}
	}
	return nil
}

// match returns why match conditions do not match, or nil.
func (c *conditions) match(in input, params runtime.Object) *whyNot {
	if len(c.list) == 0 {
		return nil
	}
	// With failurePolicy Fail, the matcher returns errors.
	matcher := matchconditions.NewMatcher(c.compiled, ptr.To(admissionregistrationv1.Fail), "", "", "")
	result := matcher.Match(in.ctx, in.VersionedAttributes, params, in)
	switch why := in.reliable(c.compiled); {
	case why != nil:
		return why
	case result.Error != nil:
		return &whyNot{err: fmt.Errorf("match condition: %w", result.Error)}
	case result.Matches:
		return nil
	}
	expression := ""
	for _, condition := range c.list {
		if condition.Name == result.FailedConditionName {
			expression = condition.Expression
		}
	}
	return &whyNot{reason: ReasonMatchCondition, text: fmt.Sprintf("match condition %q is false: %s", result.FailedConditionName, expression)}
}

// value is the value of a validation.
type value struct {
	holds bool
	err   error
}

// namespace returns the namespace of a request, if it has one.
func (in input) namespace(lookup namespaceLookup) (*corev1.Namespace, *whyNot) {
	name := in.GetNamespace()
	if name == "" || in.GetResource().GroupResource() == namespacesResource() {
		return nil, nil
	}
	ns, err := lookup.get(name)
	if err != nil {
		return nil, &whyNot{unknown: fmt.Sprintf("namespace %q is not known: %v", name, err)}
	}
	return cel.CreateNamespaceObject(ns), nil
}

// validate returns the value of each validation.
func (x *expressions) validate(in input, params runtime.Object, lookup namespaceLookup) ([]value, *whyNot) {
	ns, why := in.namespace(lookup)
	if why != nil {
		return nil, why
	}
	request := cel.CreateAdmissionRequest(in.Attributes, metav1.GroupVersionResource(in.matched.resource), metav1.GroupVersionKind(in.matched.kind))
	results, _, err := x.validations.ForInput(in.ctx, in.VersionedAttributes, request, cel.OptionalVariableBindings{VersionedParams: params, Authorizer: in},
		ns, celconfig.RuntimeCELCostBudget)
	if why := in.reliable(x.validations); why != nil {
		return nil, why
	}
	if err != nil {
		return nil, &whyNot{err: err}
	}
	values := make([]value, 0, len(results))
	for _, result := range results {
		v := value{err: result.Error}
		if result.Error == nil && result.EvalResult != nil {
			v.holds = result.EvalResult.Value() == true
		}
		values = append(values, v)
	}
	return values, nil
}

// mutate returns the error of the first mutation that has one, as far as this is known.
func (x *expressions) mutate(in input, params runtime.Object, lookup namespaceLookup) error {
	ns, why := in.namespace(lookup)
	if why != nil {
		return nil
	}
	attributes := in.VersionedAttributes
	for i, mutation := range x.mutations {
		patched, err := mutation.Patch(in.ctx, patch.Request{
			MatchedResource: in.matched.resource, VersionedAttributes: attributes, Namespace: ns,
			ObjectInterfaces:  admission.NewObjectInterfacesFromScheme(scheme.Scheme),
			OptionalVariables: cel.OptionalVariableBindings{VersionedParams: params, Authorizer: in},
			TypeConverter:     managedfields.NewDeducedTypeConverter(), // merges anything: the schema of the kind is not known
		}, celconfig.RuntimeCELCostBudget)
		switch {
		case err != nil && *in.asked:
			return nil // the authorizer is not known
		case err != nil:
			return fmt.Errorf("mutations[%d]: %w", i, err)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
		if err == nil {
			attributes, err = versioned(in.Attributes, in.matched.kind, fields, in.old)
		}
		if err != nil {
			return nil //nolint:nilerr // what follows is not known
		}
	}
	return nil
}

// ExpressionError is an expression that does not compile.
type ExpressionError struct {
	// Kind and Name are of the configuration or policy. Webhook is the name of the webhook, empty for a policy.
	Kind, Name, Webhook string
	// Field is the field in the webhook, or in the policy: "matchConditions[0].expression", "spec.validations[0].expression".
	Field string
	// Text is the message of the CEL compiler.
	Text string
}

// ExpressionErrors returns the match conditions of webhooks, and all expressions of policies, that do not compile with the
// k8s.io/apiserver in your go.mod. An API server of another version can have more functions.
func (a *Admission) ExpressionErrors() []ExpressionError {
	var all []ExpressionError
	for _, w := range a.webhooks {
		if compiled := w.conditions.compiled; compiled != nil && len(compiled.CompilationErrors()) > 0 {
			of := ExpressionError{Kind: w.kind, Name: w.configuration, Webhook: w.Name}
			all = append(all, of.in("", policySpec{MatchConditions: w.MatchConditions})...)
		}
	}
	for _, p := range a.policies {
		all = append(all, ExpressionError{Kind: p.kind, Name: p.name}.in("spec.", p.spec)...)
	}
	return all
}

// in returns the expressions of a webhook or policy that do not compile, each compiled alone. A variable that does not compile can have any
// type for the expressions that use it.
func (x ExpressionError) in(prefix string, spec policySpec) (all []ExpressionError) {
	compiler, err := newCompiler()
	if err != nil {
		return nil
	}
	check := func(variables cel.OptionalVariableDeclarations, field string, index int, expression cel.ExpressionAccessor) {
		compiled := compiler.CompileCondition([]cel.ExpressionAccessor{expression}, variables, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			x.Field, x.Text = fmt.Sprintf(prefix+field, index), err.Error()
			all = append(all, x)
		}
	}
	without := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
	variables := without
	variables.HasAuthorizer = true
	for i, v := range spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		check(variables, "variables[%d].expression", i, variable)
		compiler.CompileAndStoreVariables([]cel.NamedExpressionAccessor{variable}, variables, environment.StoredExpressions)
	}
	for i := range spec.MatchConditions {
		check(variables, "matchConditions[%d].expression", i, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	for i, v := range spec.Validations {
		check(variables, "validations[%d].expression", i, &validating.ValidationCondition{Expression: v.Expression})
		if v.MessageExpression != "" {
			check(without, "validations[%d].messageExpression", i, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
		}
	}
	for i, v := range spec.AuditAnnotations {
		check(variables, "auditAnnotations[%d].valueExpression", i, &validating.AuditAnnotationCondition{ValueExpression: v.ValueExpression})
	}
	for i, m := range spec.Mutations {
		if field, expression, _ := mutationOf(m); expression != nil {
			check(forMutations(variables), "mutations[%d]."+field+".expression", i, expression)
		}
	}
	return all
}
