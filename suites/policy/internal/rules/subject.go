package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// Subject is what the contract is about, as decoded manifests. The fields are documented in suites/policy.
type Subject struct {
	Name      string
	Policies  []shipped.Manifest
	Given     []shipped.Manifest
	Good      []Sample
	Bad       []Bad
	Requester framework.User
}

// Sample is an object with its request: its creation, or the update or deletion of Old, which is what the request finds.
type Sample struct {
	Name        string // in messages: "good[0]"
	Object, Old map[string]any
	Deleted     bool
	Subresource string // of the update
}

// persisted returns the object that exists before or after the request.
func (s Sample) persisted() map[string]any {
	if s.Old != nil {
		return s.Old
	}
	return s.Object
}

// Bad is a request that the policies must refuse.
type Bad struct {
	Sample
	Denied string
	Fix    map[string]any
}

// Defect returns where bad differs from its fix, apart from what says which object it is.
func (b Bad) Defect() []cel.Path {
	if b.Fix == nil {
		return nil
	}
	return vary.Defect(b.Object, b.Fix)
}

// The kinds of manifests of a Subject.
const (
	validatingPolicy = "ValidatingAdmissionPolicy"
	mutatingPolicy   = "MutatingAdmissionPolicy"
)

// Policy is a ValidatingAdmissionPolicy or MutatingAdmissionPolicy of a Subject.
type Policy struct {
	unstructured.Unstructured
	// spec has the fields of both kinds, but for the mutations.
	spec admissionregistrationv1.ValidatingAdmissionPolicySpec
}

// Mutating reports whether the policy is a MutatingAdmissionPolicy.
func (p Policy) Mutating() bool { return p.GetKind() == mutatingPolicy }

// IgnoresErrors reports whether the failurePolicy is Ignore.
func (p Policy) IgnoresErrors() bool {
	return p.spec.FailurePolicy != nil && *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// resourceRules returns the resource rules of the policy.
func (p Policy) resourceRules() (all []admissionregistrationv1.RuleWithOperations) {
	if p.spec.MatchConstraints == nil {
		return nil
	}
	for _, each := range p.spec.MatchConstraints.ResourceRules {
		all = append(all, each.RuleWithOperations)
	}
	return all
}

// paramKinds returns the kind of the params of the policy, if it has one.
func (p Policy) paramKinds() []schema.GroupVersionKind {
	if p.spec.ParamKind == nil {
		return nil
	}
	return []schema.GroupVersionKind{schema.FromAPIVersionAndKind(p.spec.ParamKind.APIVersion, p.spec.ParamKind.Kind)}
}

// binding is a binding of a Subject.
type binding struct {
	unstructured.Unstructured
	// spec has the fields of both kinds.
	spec admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec
}

// denies reports whether the binding has the action Deny.
func (b binding) denies() bool {
	return slices.Contains(b.spec.ValidationActions, admissionregistrationv1.Deny)
}

func (s Subject) validating() bool {
	return slices.ContainsFunc(s.List(), func(p Policy) bool { return !p.Mutating() })
}

func (s Subject) mutating() bool { return slices.ContainsFunc(s.List(), Policy.Mutating) }

// handles reports whether rules of the policies and webhooks have an operation.
func (s Subject) handles(operation admissionregistrationv1.OperationType) bool {
	return handles(s.rules(), operation)
}

// handles reports whether rules have an operation.
func handles(rules []admissionregistrationv1.RuleWithOperations, operation admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.Operations, operation) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
	})
}

// List returns the policies.
func (s Subject) List() []Policy {
	var all []Policy
	for _, u := range s.manifests(false) {
		p := Policy{Unstructured: u}
		specOf(u, &p.spec)
		all = append(all, p)
	}
	return all
}

// Bindings returns the bindings.
func (s Subject) Bindings() []binding {
	var all []binding
	for _, u := range s.manifests(true) {
		b := binding{Unstructured: u}
		specOf(u, &b.spec)
		all = append(all, b)
	}
	return all
}

// manifests returns the policies, or the bindings, as they are.
func (s Subject) manifests(bindings bool) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, manifest := range s.Policies {
		u := unstructured.Unstructured{Object: manifest.Object}
		if object.IsPolicy(manifest.Object) && strings.HasSuffix(u.GetKind(), "Binding") == bindings {
			all = append(all, u)
		}
	}
	return all
}

// specOf reads the spec of a manifest. What cannot be read is missing: the API server says what is wrong.
func specOf(u unstructured.Unstructured, into any) {
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into)
	}
}

// Misuse returns what is wrong with the Subject. Empty means nothing.
func (s Subject) Misuse() []string {
	var misuse []string
	if len(s.List()) == 0 {
		misuse = append(misuse, "there is no ValidatingAdmissionPolicy or MutatingAdmissionPolicy among the policies")
	}
	if len(s.Good) == 0 {
		misuse = append(misuse, "there is no good object: give one that the policies allow, or a request")
	}
	for i, bad := range s.Bad {
		if bad.Denied == "" {
			misuse = append(misuse, fmt.Sprintf("bad[%d] has no message: give a part of the message of the refusal, or another refusal would do", i))
		}
	}
	return append(misuse, s.Mismatched()...)
}

// Mismatched returns which updates are about two objects.
func (s Subject) Mismatched() (misuse []string) {
	for _, one := range s.samples() {
		found, u := unstructured.Unstructured{Object: one.Old}, unstructured.Unstructured{Object: one.Object}
		if one.Old != nil && (found.GroupVersionKind() != one.kind || found.GetNamespace() != u.GetNamespace() || found.GetName() != u.GetName()) {
			misuse = append(misuse, fmt.Sprintf("%s: the old object is another one: want the same kind, namespace and name", one.Name))
		}
	}
	return misuse
}

// probePrefix begins the names of the probes.
const probePrefix = "admissiontest-probe-"

// evaluatedMark is the message by which a probe says that it was evaluated.
const evaluatedMark = "the policy was evaluated"

// Probes returns a copy of each ValidatingAdmissionPolicy and its bindings that refuses nothing. It warns that it is
// evaluated, of each validation that is false, by its index, and of each evaluation error, whatever the failurePolicy is.
// The texts are short and have one line each, because an API server cuts warnings of more than 4096 characters in all, and drops
// one with a control character: see Policy.probe.
func (s Subject) Probes() []map[string]any {
	var probes []map[string]any
	for _, p := range s.List() {
		if p.Mutating() {
			continue
		}
		p.spec.Validations = append(slices.Clone(p.spec.Validations), admissionregistrationv1.Validation{Expression: "false"})
		probes = append(probes, p.probe(probePrefix+p.GetName(), func(i int, validation *admissionregistrationv1.Validation) {
			validation.Message, validation.MessageExpression = fmt.Sprintf("validations[%d]", i), ""
			if i == len(p.spec.Validations)-1 {
				validation.Message = evaluatedMark
			}
		}))
	}
	for _, b := range s.Bindings() {
		if b.GetKind() == validatingPolicy+"Binding" {
			probes = append(probes, b.onlyWarning(probePrefix+b.GetName(), probePrefix+b.spec.PolicyName))
		}
	}
	return probes
}

// validationVariable begins the names of the variables that have the validations of a policy in its probe.
const validationVariable = "admissiontestValidation"

// probe returns a copy of a ValidatingAdmissionPolicy in which an error always decides, with changed validations. An API server can quote
// its expressions in a warning about an evaluation error: the expressions of validations are variables, and a matchCondition is one line.
func (p Policy) probe(name string, change func(index int, validation *admissionregistrationv1.Validation)) map[string]any {
	spec, fail := p.spec.DeepCopy(), admissionregistrationv1.Fail
	spec.FailurePolicy, spec.AuditAnnotations = &fail, nil
	for i := range spec.Validations {
		validation, variable := &spec.Validations[i], fmt.Sprintf("%s%d", validationVariable, i)
		spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: variable, Expression: validation.Expression})
		validation.Expression = "variables." + variable
		change(i, validation)
	}
	for i := range spec.MatchConditions {
		spec.MatchConditions[i].Expression = lineOf(spec.MatchConditions[i].Expression)
	}
	return withSpec(p.Unstructured, name, spec)
}

// onlyWarning returns a copy of a binding that only warns, and that a param which does not exist turns off.
func (b binding) onlyWarning(name, policy string) map[string]any {
	spec, allow := b.spec.DeepCopy(), admissionregistrationv1.AllowAction
	spec.PolicyName, spec.ValidationActions = policy, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
	if spec.ParamRef != nil {
		spec.ParamRef.ParameterNotFoundAction = &allow
	}
	return withSpec(b.Unstructured, name, spec)
}

// withSpec returns an object of a kind with another name and spec.
func withSpec(of unstructured.Unstructured, name string, spec any) map[string]any {
	fields, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(spec) // it was read from JSON
	return map[string]any{"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "metadata": map[string]any{"name": name}, "spec": fields}
}

// lineOf returns an expression in one line, or as it is if it is no expression, or if it has an escaped identifier, which
// cel.Text does not write.
func lineOf(expression string) string {
	if !strings.ContainsFunc(expression, unicode.IsControl) || strings.Contains(expression, "`") {
		return expression
	}
	root, _, err := cel.Parse(expression)
	if err != nil {
		return expression
	}
	line, err := cel.Text(root)
	if err != nil {
		return expression
	}
	return line
}
