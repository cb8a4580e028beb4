package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// puttingTarget notes what is put, and in which order.
type puttingTarget struct {
	Target
	put []string
}

func (p *puttingTarget) Open(context.Context, string) error { return nil }

func (p *puttingTarget) Put(_ context.Context, _ string, manifest map[string]any, _ map[string]hook.Script) error {
	p.put = append(p.put, kindOf(manifest).Kind)
	return nil
}

// A policy in force could refuse what is installed after it, so bindings come last.
func TestArrangeOrder(t *testing.T) {
	t.Parallel()
	of := func(group, kind string) map[string]any { return map[string]any{"apiVersion": group, "kind": kind} }
	const admission = "admissionregistration.k8s.io/v1"
	target := &puttingTarget{}
	c := &scenarioCase{target: target, given: []map[string]any{
		of(admission, "ValidatingAdmissionPolicy"), of(admission, "ValidatingAdmissionPolicyBinding"),
		of(admission, "MutatingWebhookConfiguration"), of("rbac.authorization.k8s.io/v1", "RoleBinding"),
	}}
	if err := c.arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"RoleBinding", "ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"}
	if !slices.Equal(target.put, want) {
		t.Errorf("put %v; want %v", target.put, want)
	}
}
