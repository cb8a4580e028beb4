package policycoverage

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/celtext"
)

// agree compares what probes observed on an API server with what its evaluator, instrumented and in this process, records for the same
// requests: for each case, policy and binding, whether the matchConditions are true, and which values each part has.
func agree(t *testing.T, tests []*test) {
	t.Helper()
	evaluations, compared := 0, 0
	for _, test := range tests {
		for _, c := range scenario.Cases(test.scenarios) {
			seen := test.seen[c.Metadata.Name]
			if seen == nil {
				continue
			}
			for at, messages := range seen.evaluations {
				p := test.policies[at.policy]
				one := met{parts: make([]values, len(p.parts)), variables: map[string]bool{}, requests: map[string]bool{}, params: map[string]bool{}}
				one.add(p, messages)
				e := &evaluator{policy: p, values: make([]values, len(p.parts))}
				request := slices.Collect(maps.Keys(one.requests))[0]
				evaluated, _, err := e.evaluate(t.Context(), requestOf(t, c, request), paramOf(c, p, at.binding))
				if err != nil {
					t.Fatalf("%s, policy %s: %v", c.Metadata.Name, p.GetName(), err)
				}
				evaluations++
				if evaluated != one.evaluated {
					t.Errorf("%s, policy %s: the matchConditions are true: probes say %t, the evaluator %t", c.Metadata.Name, p.GetName(), one.evaluated, evaluated)
				}
				for i, part := range p.parts {
					if part.unknown != "" || test.missed[missed{at.policy, i}] != "" {
						continue
					}
					compared++
					if one.parts[i] != e.values[i] {
						t.Errorf("%s, policy %s, %s %s: probes say %+v, the evaluator %+v", c.Metadata.Name, p.GetName(), part.field, part.text, one.parts[i], e.values[i])
					}
				}
			}
		}
	}
	t.Logf("%d evaluations, %d values of parts", evaluations, compared)
	if evaluations < 20 || compared < 100 {
		t.Errorf("compared %d values in %d evaluations, want at least 100 in 20", compared, evaluations)
	}
}

// evaluator evaluates the expressions of a policy with the compiler and evaluator of k8s.io/apiserver. Each part of them is an
// argument of a function that notes its value: so nothing about the order of evaluation is assumed.
type evaluator struct {
	policy *policy
	values []values

	compiler *plugincel.CompositedCompiler
	compiled map[string]plugincel.ConditionEvaluator // by the field of the expression
}

// note is the function.
const note = "noteValue"

func (e *evaluator) note(part, value ref.Val) ref.Val {
	i, _ := part.(types.Int)
	is := value
	if optional, ok := value.(*types.Optional); ok {
		is = types.Bool(optional.HasValue())
	}
	e.values[i].yes = e.values[i].yes || is == types.True
	e.values[i].no = e.values[i].no || is == types.False
	return value
}

// instrumented returns an expression in which each part is noted.
func (e *evaluator) instrumented(field, text string) string {
	root, _, err := celtext.Parse(text)
	if err != nil || slices.Contains(e.policy.unread, field) {
		return text
	}
	f := ast.NewExprFactory()
	for _, n := range slices.Backward(nodesOf(root, nil)) { // the inner ones first
		for i, part := range slices.Backward(e.policy.parts) { // whether an optional value is present comes after the value
			if part.field != field || part.id != n.is.ID() {
				continue
			}
			at := n.is
			if strings.HasSuffix(part.text, ".hasValue()") && isCall(at, "orValue") {
				at = at.AsCall().Target()
			}
			at.SetKindCase(f.NewCall(at.ID(), note, f.NewLiteral(0, types.Int(i)), f.CopyExpr(at)))
		}
	}
	return textOf(root)
}

// accessor is an expression, and the variable with its value.
type accessor struct{ name, text string }

// GetName returns the name of the variable.
func (a accessor) GetName() string { return a.name }

// GetExpression returns the expression.
func (a accessor) GetExpression() string { return a.text }

// ReturnTypes returns any type.
func (accessor) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

// begin makes a compiler that knows the function, and the variables of the policy, unless there is one.
func (e *evaluator) begin(options plugincel.OptionalVariableDeclarations) (err error) {
	if e.compiler != nil {
		return nil
	}
	// It has another parameter before Kubernetes 1.36: whether costs are strict.
	base := reflect.ValueOf(environment.MustBaseEnvSet)
	arguments := []reflect.Value{reflect.ValueOf(environment.DefaultCompatibilityVersion()), reflect.ValueOf(true)}
	known, _ := base.Call(arguments[:base.Type().NumIn()])[0].Interface().(*environment.EnvSet)
	anything := cel.TypeParamType("T")
	env, err := known.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []cel.EnvOption{
		cel.Function(note, cel.Overload(note, []*cel.Type{cel.IntType, anything}, anything, cel.BinaryBinding(e.note))),
	}})
	if err != nil {
		return err
	}
	e.compiled = map[string]plugincel.ConditionEvaluator{}
	if e.compiler, err = plugincel.NewCompositedCompiler(env); err != nil {
		return err
	}
	for i, each := range e.policy.list("variables") {
		variable := accessor{fmt.Sprint(each["name"]), e.instrumented(fmt.Sprintf("spec.variables[%d].expression", i), fmt.Sprint(each["expression"]))}
		if result := e.compiler.CompileAndStoreVariable(variable, options, environment.StoredExpressions); result.Error != nil {
			return result.Error
		}
	}
	return nil
}

// evaluate evaluates a request as an API server does: first all matchConditions, then the rest, if these are true. A messageExpression
// is evaluated if its validation is false. It returns whether the matchConditions are true, and the indexes of the validations that are not.
func (e *evaluator) evaluate(ctx context.Context, request *admission.VersionedAttributes, param runtime.Object) (evaluated bool, denies []int, err error) {
	_, hasParams, _ := unstructured.NestedMap(e.policy.Object, "spec", "paramKind")
	options := plugincel.OptionalVariableDeclarations{HasParams: hasParams}
	if err := e.begin(options); err != nil {
		return false, nil, err
	}
	bindings := plugincel.OptionalVariableBindings{VersionedParams: param}
	review := plugincel.CreateAdmissionRequest(request, metav1.GroupVersionResource(request.GetResource()), metav1.GroupVersionKind(request.GetKind()))
	one := func(field string, text any) (ref.Val, error) {
		if text == nil {
			return nil, nil
		}
		if e.compiled[field] == nil {
			e.compiled[field] = e.compiler.CompileCondition([]plugincel.ExpressionAccessor{accessor{text: e.instrumented(field, fmt.Sprint(text))}}, options, environment.StoredExpressions)
		}
		compiled := e.compiled[field]
		if wrong := compiled.CompilationErrors(); len(wrong) > 0 {
			return nil, wrong[0]
		}
		results, _, err := compiled.ForInput(ctx, request, review, bindings, nil, 1_000_000_000)
		if err != nil {
			return nil, err
		}
		return results[0].EvalResult, nil // an error of the evaluation is no value
	}
	all := true
	for i, each := range e.policy.list("matchConditions") {
		value, err := one(fmt.Sprintf("spec.matchConditions[%d].expression", i), each["expression"])
		if err != nil {
			return false, nil, err
		}
		all = all && value == types.True
	}
	if !all {
		return false, nil, nil
	}
	for i, each := range e.policy.list("validations") {
		at := fmt.Sprintf("spec.validations[%d].", i)
		value, err := one(at+"expression", each["expression"])
		if err == nil && value == types.False {
			_, err = one(at+"messageExpression", each["messageExpression"])
		}
		if err != nil {
			return false, nil, err
		}
		if value != types.True {
			denies = append(denies, i)
		}
	}
	options.HasPatchTypes = true
	for i, each := range e.policy.list("mutations") {
		for _, form := range []string{"applyConfiguration", "jsonPatch"} {
			text, found, _ := unstructured.NestedString(each, form, "expression")
			if !found {
				continue
			}
			compiled := e.compiler.CompileMutatingEvaluator(accessor{text: e.instrumented(fmt.Sprintf("spec.mutations[%d].%s.expression", i, form), text)}, options, environment.StoredExpressions)
			if wrong := compiled.CompilationErrors(); len(wrong) > 0 {
				return false, nil, wrong[0]
			}
			if _, _, err := compiled.ForInput(ctx, request, review, bindings, nil, 1_000_000_000); err != nil {
				return false, nil, err
			}
		}
	}
	return true, denies, nil
}

// requestOf returns the request of a case, with its operation and resource, such as "CREATE apps/deployments".
func requestOf(t *testing.T, c scenario.Scenario, request string) *admission.VersionedAttributes {
	t.Helper()
	step := c.Spec.When[len(c.Spec.When)-1]
	existing := func(kind, name string) map[string]any {
		for _, manifest := range c.Spec.Given {
			if u := (unstructured.Unstructured{Object: manifest}); u.GetKind() == kind && u.GetName() == name {
				return manifest
			}
		}
		return nil
	}
	object, old := step.Create, map[string]any(nil)
	switch {
	case step.Patch != nil:
		old = existing(step.Patch.Kind, step.Patch.Name)
		object = merged(runtime.DeepCopyJSON(old), step.Patch.Merge)
	case step.Delete != nil:
		old = existing(step.Delete.Kind, step.Delete.Name)
	}
	if step.Then.Object != nil { // what the MutatingAdmissionPolicies make of it
		object = merged(runtime.DeepCopyJSON(object), step.Then.Object)
	}
	operation, rest, _ := strings.Cut(request, " ")
	group, resource, _ := strings.Cut(rest, "/")
	is := unstructured.Unstructured{Object: object}
	if object == nil {
		is.Object = old
	}
	gvk := is.GroupVersionKind()
	info := &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}}
	if step.As != nil {
		info = &user.DefaultInfo{Name: step.As.Name, Groups: step.As.Groups}
	}
	asObject := func(manifest map[string]any) runtime.Object {
		if manifest == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: manifest}
	}
	attributes := admission.NewAttributesRecord(asObject(object), asObject(old), gvk, is.GetNamespace(), is.GetName(),
		schema.GroupVersionResource{Group: group, Version: gvk.Version, Resource: resource}, "", admission.Operation(operation), nil, false, info)
	versioned, err := admission.NewVersionedAttributes(attributes, gvk, nil)
	if err != nil {
		t.Fatal(err)
	}
	return versioned
}

// merged sets fields of an object, and removes those that are nil.
func merged(object, fields map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for name, value := range fields {
		if inner, ok := value.(map[string]any); ok {
			of, _ := object[name].(map[string]any)
			value = merged(of, inner)
		}
		if object[name] = value; value == nil {
			delete(object, name)
		}
	}
	return object
}

// paramOf returns the param of a binding, or nil.
func paramOf(c scenario.Scenario, p *policy, binding int) runtime.Object {
	name, found, _ := unstructured.NestedString(c.Spec.Given[binding], "spec", "paramRef", "name")
	kind, _, _ := unstructured.NestedString(p.Object, "spec", "paramKind", "kind")
	for _, manifest := range c.Spec.Given {
		if u := (&unstructured.Unstructured{Object: manifest}); found && u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	return nil
}

// computed returns which changes of expressions the cases of a test with one ValidatingAdmissionPolicy do not notice according to the
// evaluator. All requests match the policy.
func computed(t *testing.T, of *test) (survivors []string) {
	t.Helper()
	deny := func(p unstructured.Unstructured) (all []string, err error) {
		e := &evaluator{policy: &policy{Unstructured: p}}
		for _, c := range scenario.Cases(of.scenarios) {
			step, operation := c.Spec.When[len(c.Spec.When)-1], "CREATE"
			kind := (&unstructured.Unstructured{Object: step.Create}).GetKind()
			if step.Patch != nil {
				operation, kind = "UPDATE", step.Patch.Kind
			} else if step.Delete != nil {
				operation, kind = "DELETE", step.Delete.Kind
			}
			evaluated, denies, err := e.evaluate(t.Context(), requestOf(t, c, operation+" /"+strings.ToLower(kind)+"s"), nil)
			if err != nil {
				return nil, err
			}
			all = append(all, fmt.Sprint(evaluated && len(denies) > 0, denies))
		}
		return all, nil
	}
	original, err := deny(of.policies[0].Unstructured)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutantsOf(of.scenarios[0]) {
		if !strings.HasSuffix(m.field, ".expression") {
			continue
		}
		if got, err := deny(unescaped(m.manifest)); err == nil && slices.Equal(got, original) { // an error: it does not compile
			survivors = append(survivors, fmt.Sprintf("%s: %s -> %s", m.field, m.old, m.new))
		}
	}
	slices.Sort(survivors)
	return survivors
}
