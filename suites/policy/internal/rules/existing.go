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
func (b *bench) existing(ctx context.Context) []*Case {
	var cases []*Case
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
			if strings.Contains(u.GetNamespace()+"/"+u.GetName(), b.server.RunID()) || storedCopy.MatchString(u.GetName()) {
				continue
			}
			s := sample{good: -1, bad: -1, name: kind.Kind + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")}
			request := framework.Update(u, u).WithUser(Controllers()[2])
			cases = append(cases, b.newCase(Existing, s, request, "update", "without a change, as "+Controllers()[2].Name))
		}
	}
	return cases
}
