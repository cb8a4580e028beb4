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

func life() []Definition {
	return []Definition{{
		ID: "PO-LIFE-1", Name: "stored-objects-can-change", Level: framework.Should,
		Title:  "An object that was stored before the policy can be changed elsewhere, and repaired.",
		Why:    "Otherwise a new policy stops controllers that label or annotate what exists.",
		Fix:    "Refuse only what the request makes bad, by a matchCondition: oldObject == null || object.spec != oldObject.spec",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/64907"},
		Check:  func(t *T) { t.allowed(Unrelated, Repairs) },
	}, {
		ID: "PO-LIFE-2", Name: "controllers-can-finish", Level: framework.Must,
		Title:  "An object in deletion can lose its finalizers, good or bad.",
		Why:    "Otherwise it, its owner and its namespace are never deleted.",
		Fix:    "A matchCondition: !has(object.metadata.deletionTimestamp). Params are looked up before it: those in the namespace of the object are gone first, so parameterNotFoundAction: Allow, or params elsewhere.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/129883", "https://github.com/kyverno/kyverno/issues/2508"},
		Check:  func(t *T) { t.allowed(Finalizers, Ending) },
	}, {
		ID: "PO-LIFE-3", Name: "namespaces-can-be-deleted", Level: framework.Must,
		Title:  "The namespace controller and the garbage collector can delete what the policy matches.",
		Why:    "Otherwise namespaces stay in the state Terminating.",
		Fix:    "Exempt exactly these users in a matchCondition.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/129883", "https://github.com/openshift/hypershift/pull/6616"},
		Check: func(t *T) {
			t.must(t.handles("DELETE"), "no policy has DELETE in its operations")
			for _, c := range t.each(Deletions) {
				t.evaluated(c) // a controller can be exempt
			}
			for _, c := range t.each(Controller, Ending) {
				if c.Request.Verb == framework.VerbDelete && c.Denied() && len(c.Errors()) == 0 {
					t.Errorf("%s: refused: %s", c.What, c.Refusal())
				}
			}
		},
	}, {
		ID: "PO-LIFE-4", Name: "cluster-keeps-running", Level: framework.Must,
		Title:  "The objects that the API server has of the kinds that the policy matches can be updated without a change.",
		Why:    "Controllers of Kubernetes write these objects: a policy that refuses them stops a part of the cluster.",
		Fix:    "Narrower rules, or a matchCondition that compares with oldObject.",
		Source: []string{"https://github.com/digitalocean/clusterlint/issues/180", "https://github.com/open-policy-agent/gatekeeper/issues/2228"},
		Check: func(t *T) {
			t.must(t.sent(Existing), "an API server without controllers has no objects of the kinds of which the policies match updates")
			t.allowed(Existing)
		},
	}}
}

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
