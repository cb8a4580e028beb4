// Package check sends the requests of the policy contract to a kube-apiserver, before and after the policies are
// installed. Package rules judges the responses.
package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Subject is what the contract is about, as decoded manifests. The fields are documented in suites/policy.
type Subject struct {
	Name      string
	Policies  []map[string]any
	Given     []map[string]any
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

// The kinds of manifests of a Subject.
const (
	validatingPolicy = "ValidatingAdmissionPolicy"
	mutatingPolicy   = "MutatingAdmissionPolicy"
	admissionGroup   = "admissionregistration.k8s.io"
)

// Policy is a ValidatingAdmissionPolicy or MutatingAdmissionPolicy of a Subject.
type Policy struct{ unstructured.Unstructured }

// Mutating reports whether the policy is a MutatingAdmissionPolicy.
func (p Policy) Mutating() bool { return p.GetKind() == mutatingPolicy }

// IgnoresErrors reports whether the failurePolicy is Ignore.
func (p Policy) IgnoresErrors() bool {
	value, _, _ := unstructured.NestedString(p.Object, "spec", "failurePolicy")
	return value == "Ignore"
}

// Handles reports whether the resource rules have an operation.
func (p Policy) Handles(operation string) bool {
	rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "matchConstraints", "resourceRules")
	for _, each := range rules {
		fields, _ := each.(map[string]any)
		operations, _, _ := unstructured.NestedStringSlice(fields, "operations")
		if slices.Contains(operations, operation) || slices.Contains(operations, "*") {
			return true
		}
	}
	return false
}

// List returns the policies.
func (s Subject) List() []Policy {
	var all []Policy
	for _, manifest := range s.Policies {
		if kind, err := object.Kind(manifest); err == nil && kind.Group == admissionGroup && (kind.Kind == validatingPolicy || kind.Kind == mutatingPolicy) {
			all = append(all, Policy{unstructured.Unstructured{Object: manifest}})
		}
	}
	return all
}

// Bindings returns the bindings, as they are.
func (s Subject) Bindings() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, manifest := range s.Policies {
		if kind, err := object.Kind(manifest); err == nil && kind.Group == admissionGroup && (kind.Kind == validatingPolicy+"Binding" || kind.Kind == mutatingPolicy+"Binding") {
			all = append(all, unstructured.Unstructured{Object: manifest})
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
const probePrefix = "probe-"

// IsProbe reports whether a name is that of a probe.
func IsProbe(name string) bool { return strings.HasPrefix(name, probePrefix) }

// Probes returns a copy of each ValidatingAdmissionPolicy and its bindings that refuses nothing: it warns of each
// validation that is false, and of each evaluation error, whatever the failurePolicy is.
func (s Subject) Probes() []map[string]any {
	var probes []map[string]any
	for _, p := range s.List() {
		if p.Mutating() {
			continue
		}
		probe := p.DeepCopy()
		probe.SetName(probePrefix + p.GetName())
		_ = unstructured.SetNestedField(probe.Object, "Fail", "spec", "failurePolicy")
		unstructured.RemoveNestedField(probe.Object, "spec", "auditAnnotations")
		probes = append(probes, probe.Object)
	}
	for _, b := range s.Bindings() {
		if b.GetKind() != validatingPolicy+"Binding" {
			continue
		}
		probe := b.DeepCopy()
		probe.SetName(probePrefix + b.GetName())
		name, _, _ := unstructured.NestedString(probe.Object, "spec", "policyName")
		_ = unstructured.SetNestedField(probe.Object, probePrefix+name, "spec", "policyName")
		_ = unstructured.SetNestedStringSlice(probe.Object, []string{"Warn"}, "spec", "validationActions")
		if _, found, _ := unstructured.NestedMap(probe.Object, "spec", "paramRef"); found {
			_ = unstructured.SetNestedField(probe.Object, "Allow", "spec", "paramRef", "parameterNotFoundAction")
		}
		probes = append(probes, probe.Object)
	}
	return probes
}
