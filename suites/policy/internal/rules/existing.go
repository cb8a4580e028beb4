package rules

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
)

// mostExisting limits the objects of a kind.
const mostExisting = 100

// existing updates the objects that the API server has before the samples are stored, of the kinds of which policies
// match updates: without a change, as the controller manager. Objects of this run are left out.
func (b *bench) existing(ctx context.Context) {
	manager := Controllers()[2]
	updated := b.served(func(each metav1.APIResource) bool {
		return !strings.Contains(each.Name, "/") && slices.ContainsFunc(b.subject.List(), func(p Policy) bool { return !p.Mutating() && p.matches(each, admission.Update) })
	})
	for _, kind := range updated {
		result, err := b.sandbox.Send(ctx, framework.Request{Verb: framework.VerbList, Kind: kind})
		if err != nil || !result.Allowed() {
			continue // such as a kind that cannot be listed
		}
		items, _ := result.Fields()["items"].([]any)
		for _, item := range items[:min(len(items), mostExisting)] {
			fields, _ := item.(map[string]any)
			u := &unstructured.Unstructured{Object: fields}
			u.SetGroupVersionKind(kind)
			name := u.GetNamespace() + "/" + u.GetName()
			if !strings.Contains(name, b.server.RunID()) && !storedCopy.MatchString(name) {
				s := sample{good: -1, bad: -1, Sample: Sample{Name: kind.Kind + " " + strings.TrimPrefix(name, "/")}}
				b.add(Existing, s, framework.Update(u, u).WithUser(manager), "update", "without a change, as "+manager.Name)
			}
		}
	}
}
