package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
	Good      []map[string]any
	Bad       []Bad
	Requester framework.User
}

// Bad is an object that the policies must refuse.
type Bad struct {
	Object map[string]any
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

// policyOf reads a policy. What cannot be read is missing: the API server says what is wrong.
func policyOf(u unstructured.Unstructured) Policy {
	var fields struct {
		Spec admissionregistrationv1.ValidatingAdmissionPolicySpec `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &fields); err != nil {
		return Policy{Unstructured: u}
	}
	return Policy{u, fields.Spec}
}

// Mutating reports whether the policy is a MutatingAdmissionPolicy.
func (p Policy) Mutating() bool { return p.GetKind() == mutatingPolicy }

// IgnoresErrors reports whether the failurePolicy is Ignore.
func (p Policy) IgnoresErrors() bool {
	return p.spec.FailurePolicy != nil && *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// resourceRules returns the resource rules of the policy.
func (p Policy) resourceRules() []admissionregistrationv1.NamedRuleWithOperations {
	if p.spec.MatchConstraints == nil {
		return nil
	}
	return p.spec.MatchConstraints.ResourceRules
}

func (s Subject) validating() bool {
	return slices.ContainsFunc(s.List(), func(p Policy) bool { return !p.Mutating() })
}

func (s Subject) mutating() bool { return slices.ContainsFunc(s.List(), Policy.Mutating) }

// handles reports whether resource rules of the policies have an operation.
func (s Subject) handles(operation admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(s.List(), func(p Policy) bool {
		return slices.ContainsFunc(p.resourceRules(), func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			return slices.Contains(rule.Operations, operation) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
		})
	})
}

// List returns the policies.
func (s Subject) List() []Policy {
	var all []Policy
	for _, manifest := range s.Policies {
		u := unstructured.Unstructured{Object: manifest.Object}
		if object.IsPolicy(manifest.Object) && !strings.HasSuffix(u.GetKind(), "Binding") {
			all = append(all, policyOf(u))
		}
	}
	return all
}

// Bindings returns the bindings, as they are.
func (s Subject) Bindings() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, manifest := range s.Policies {
		u := unstructured.Unstructured{Object: manifest.Object}
		if object.IsPolicy(manifest.Object) && strings.HasSuffix(u.GetKind(), "Binding") {
			all = append(all, u)
		}
	}
	return all
}

// Misuse returns what is wrong with the Subject. Empty means nothing.
func (s Subject) Misuse() []string {
	var misuse []string
	if len(s.List()) == 0 {
		misuse = append(misuse, "Subject.Policies has no ValidatingAdmissionPolicy or MutatingAdmissionPolicy")
	}
	if len(s.Good) == 0 {
		misuse = append(misuse, "Subject.Good is empty: give an object that the policies allow")
	}
	for i, bad := range s.Bad {
		if bad.Denied == "" {
			misuse = append(misuse, fmt.Sprintf("Subject.Bad[%d].Denied is empty: give a part of the message of the refusal, or another refusal would do", i))
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
// one with a control character: see quotable.
func (s Subject) Probes() []map[string]any {
	var probes []map[string]any
	for _, p := range s.List() {
		if p.Mutating() {
			continue
		}
		probe := p.probe(probePrefix+p.GetName(), func(i int, validation map[string]any) {
			validation["message"] = fmt.Sprintf("validations[%d]", i)
			delete(validation, "messageExpression")
		})
		validations, _, _ := unstructured.NestedSlice(probe.Object, "spec", "validations")
		validations = append(validations, map[string]any{"expression": "false", "message": evaluatedMark})
		_ = unstructured.SetNestedSlice(probe.Object, validations, "spec", "validations") // the spec is an object
		probes = append(probes, probe.Object)
	}
	for _, b := range s.Bindings() {
		if b.GetKind() == validatingPolicy+"Binding" {
			name, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
			probes = append(probes, onlyWarning(b, probePrefix+b.GetName(), probePrefix+name).Object)
		}
	}
	return probes
}

// probe returns a copy of a ValidatingAdmissionPolicy in which an error always decides, with changed validations.
func (p Policy) probe(name string, change func(index int, validation map[string]any)) *unstructured.Unstructured {
	probe := p.DeepCopy()
	probe.SetName(name)
	_ = unstructured.SetNestedField(probe.Object, "Fail", "spec", "failurePolicy")
	unstructured.RemoveNestedField(probe.Object, "spec", "auditAnnotations")
	validations := quotable(probe)
	for i, each := range validations {
		if fields, ok := each.(map[string]any); ok {
			change(i, fields)
		}
	}
	_ = unstructured.SetNestedSlice(probe.Object, validations, "spec", "validations") // the spec is an object
	return probe
}

// onlyWarning returns a copy of a binding that only warns, and that a param which does not exist turns off.
func onlyWarning(binding unstructured.Unstructured, name, policy string) *unstructured.Unstructured {
	probe := binding.DeepCopy()
	probe.SetName(name)
	_ = unstructured.SetNestedField(probe.Object, policy, "spec", "policyName")
	_ = unstructured.SetNestedStringSlice(probe.Object, []string{"Warn"}, "spec", "validationActions")
	if _, found, _ := unstructured.NestedMap(probe.Object, "spec", "paramRef"); found {
		_ = unstructured.SetNestedField(probe.Object, "Allow", "spec", "paramRef", "parameterNotFoundAction")
	}
	return probe
}

// validationVariable begins the names of the variables that have the validations of a policy in its probe.
const validationVariable = "admissiontestValidation"

// quotable makes the expressions of a policy such that an API server can quote them in a warning about an evaluation error. It
// returns the validations, whose expressions are variables now, and writes each matchCondition in one line.
func quotable(policy *unstructured.Unstructured) []any {
	validations, _, _ := unstructured.NestedSlice(policy.Object, "spec", "validations")
	variables, _, _ := unstructured.NestedSlice(policy.Object, "spec", "variables")
	for i, each := range validations {
		if fields, ok := each.(map[string]any); ok {
			name := fmt.Sprintf("%s%d", validationVariable, i)
			variables = append(variables, map[string]any{"name": name, "expression": fields["expression"]})
			fields["expression"] = "variables." + name
		}
	}
	if len(variables) > 0 {
		_ = unstructured.SetNestedSlice(policy.Object, variables, "spec", "variables") // the spec is an object
	}
	conditions, found, _ := unstructured.NestedSlice(policy.Object, "spec", "matchConditions")
	for _, each := range conditions {
		if fields, ok := each.(map[string]any); ok {
			if expression, ok := fields["expression"].(string); ok {
				fields["expression"] = lineOf(expression)
			}
		}
	}
	if found {
		_ = unstructured.SetNestedSlice(policy.Object, conditions, "spec", "matchConditions")
	}
	return validations
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
