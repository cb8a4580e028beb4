package check

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
)

// mostExisting limits the objects of a kind.
const mostExisting = 100

// existing updates the objects that the API server has before the samples are stored, of the kinds of which policies
// match updates: without a change, as the controller manager. Objects of this run are left out.
func (b *bench) existing(ctx context.Context) []*Case {
	var cases []*Case
	for _, kind := range b.updatedKinds() {
		result, err := b.sandbox.Send(ctx, framework.Request{Verb: framework.VerbList, Kind: kind})
		if err != nil || !result.Allowed() {
			continue // such as a kind that cannot be listed
		}
		items, _ := result.Fields()["items"].([]any)
		for _, item := range items[:min(len(items), mostExisting)] {
			fields, _ := item.(map[string]any)
			u := &unstructured.Unstructured{Object: fields}
			u.SetGroupVersionKind(kind)
			if strings.Contains(u.GetNamespace()+"/"+u.GetName(), b.server.RunID()) || b.on.has(u) {
				continue
			}
			s := sample{good: -1, bad: -1, name: kind.Kind + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")}
			request := framework.Update(u, u).WithUser(Controllers()[2])
			cases = append(cases, b.newCase(Existing, s, request, "update", "without a change, as "+Controllers()[2].Name))
		}
	}
	return cases
}

// updatedKinds returns the kinds of resources of which a validating policy matches updates.
func (b *bench) updatedKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, p := range b.subject.List() {
		for _, served := range b.server.Optional().Resources() {
			kind := schema.GroupVersionKind{Group: served.Group, Version: served.Version, Kind: served.Kind}
			updates := func(rule any) bool { return ruleMatches(rule, served, admission.Update) }
			if !p.Mutating() && !strings.Contains(served.Name, "/") && !slices.Contains(kinds, kind) && slices.ContainsFunc(p.rules(), updates) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}
