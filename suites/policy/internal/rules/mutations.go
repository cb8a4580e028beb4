package rules

import (
	"net/http"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/vary"
)

func mutations() []Definition {
	return []Definition{{
		ID: "PO-MUT-1", Name: "idempotent", Level: framework.Must,
		Title:  "Applied twice, the policy does the same as applied once.",
		Why:    "The API server may call it again in one request, and clients send back what they got.",
		Fix:    "A matchCondition that is false if the change is there already.",
		Source: []string{"https://kep.k8s.io/3962"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(Reapplied) {
				t.Reached()
				if refusal := c.Refusal(); refusal != "" && !c.Denied() {
					t.Unobserved("%s: the API server refuses what it made itself: %s", c.What, refusal)
					continue
				} else if refusal != "" {
					t.Errorf("%s: refused: %s", c.What, refusal)
					continue
				}
				for _, path := range c.ChangedAgain() {
					t.Errorf("%s: the policies change it again, at %s", c.What, path)
				}
			}
		},
	}, {
		ID: "PO-MUT-4", Name: "no-immutable-change", Level: framework.Must,
		Title:  "An object that was stored before the policy can be updated.",
		Why:    "A policy that changes an immutable field on UPDATE makes each update fail: pods of jobs never finish.",
		Fix:    "operations: [CREATE]",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/4121", "https://github.com/kserve/kserve/issues/3159"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(Unrelated, Finalizers) {
				if c.Good < 0 {
					continue
				}
				t.Reached()
				if refusal := c.Refusal(); refusal != "" {
					t.Errorf("%s: %d: %s; without the policies: %d", c.What, c.After.Status.Code, refusal, c.Before.Status.Code)
				}
			}
		},
	}}
}

// orders is the rule about several policies.
func orders() []Definition {
	return []Definition{{
		ID: "PO-MUT-2", Name: "order-free", Level: framework.Must,
		Title:  "Two policies give the same object in either order.",
		Why:    "The API server calls them in no fixed order, so the same object is stored in two forms, or refused sometimes.",
		Fix:    "One policy with several mutations, which have an order; or conditions that do not read what the other one writes.",
		Source: []string{"https://github.com/kyverno/policies/issues/1242", "https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go"},
		Check: func(t *T) {
			t.must(len(t.mutators()) > 1, "there are no two MutatingAdmissionPolicies with a binding")
			t.mutates()
			for _, c := range t.each(Orders) {
				if c.Refusal() != "" && c.Control.Refusal() != "" {
					continue
				}
				t.Reached()
				if one, other := outcome(c), outcome(c.Control); one != other {
					t.Errorf("%s: %s; in the other order: %s", c.What, one, other)
					continue
				}
				if changed := c.Changed(c.After, c.Control.After, true); len(changed) > 0 {
					t.Errorf("%s: another object than in the other order, at %s", c.What, changed)
				}
			}
		},
	}}
}

// patches are the rules about what a mutation makes of any object.
func patches() []Definition {
	return []Definition{{
		ID: "PO-MUT-3", Name: "result-is-valid", Level: framework.Must,
		Title:  "The API server accepts what the policy makes of each object that it accepts without the policy.",
		Why:    "Users read an error about a field that they did not write, and cannot create the object.",
		Fix:    "A matchCondition for what the patch needs.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/9152", "https://kep.k8s.io/3962"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(mutable()...) {
				t.Reached()
				if refusal := c.Refusal(); refusal != "" && !c.Denied() && c.After.Status.Code < 500 {
					t.Errorf("%s: %d: %s; without the policies: %d", c.What, c.After.Status.Code, refusal, c.Before.Status.Code)
				}
			}
		},
	}, {
		ID: "PO-MUT-5", Name: "keeps-what-is-there", Level: framework.Must,
		Title:  "Entries of lists and maps that others wrote survive, in their order.",
		Why:    "A patch that writes a whole map deletes the labels of everyone else.",
		Fix:    "Patch the key and not the map: ApplyConfiguration, or a JSONPatch of one entry.",
		Source: []string{"https://github.com/kube-rs/kube/issues/943", "https://github.com/kyverno/kyverno/issues/10026"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(mutable()...) {
				if c.Refusal() != "" {
					continue
				}
				t.Reached()
				for _, path := range c.Lost() {
					t.Errorf("%s: the policies remove %s, or change its order", c.What, path)
				}
			}
		},
	}, {
		ID: "PO-MUT-6", Name: "patch-applies", Level: framework.Must,
		Title:  "The patch applies to each object that the API server accepts, without absent parents and with any keys.",
		Why:    "A patch that does not apply refuses the request, and some of these errors ignore failurePolicy.",
		Fix:    "ApplyConfiguration; or add the parent first, in the same mutation (an empty map is gone before the next one), and use jsonpatch.escapeKey.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/1340", "https://github.com/kubernetes/kubernetes/issues/134167"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(mutable()...) {
				if c.After.Status.Code == http.StatusServiceUnavailable && t.otherwise(c) {
					continue
				}
				t.Reached()
				refusal := c.Refusal()
				if c.After.Status.Code >= 500 || c.Denied() && !validatingDenies.MatchString(refusal) && len(c.Errors()) == 0 {
					t.Errorf("%s: %d: %s; without the policies: %d", c.What, c.After.Status.Code, refusal, c.Before.Status.Code)
				}
				if ignored := c.Forced.Status.Message; refusal == "" && !c.Forced.Allowed() && deniedBy.MatchString(ignored) && !validatingDenies.MatchString(ignored) && len(c.Errors()) == 0 {
					t.Errorf("%s: an error is ignored, and nothing is changed: %s", c.What, ignored)
				}
			}
		},
	}}
}

// elements is the rule about which element of a list a mutation changes.
func elements() []Definition {
	return []Definition{{
		ID: "PO-MUT-9", Name: "changes-the-matched-element", Level: framework.Must,
		Title:  "Beside an element of a list that it leaves alone, the policy changes the same element as before.",
		Why:    "A policy that looks for an element, and then patches the first one, rewrites what is none of its business.",
		Fix:    "Build one JSONPatch operation for each element with its own index, or patch by name with ApplyConfiguration.",
		Source: []string{"https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/"},
		Check: func(t *T) {
			t.mutates()
			t.must(t.sent(Inert), "no policy changes a string of a named element of a list")
			said := slices.DeleteFunc(t.each(Inert), func(c *Case) bool { return c.Meaningless() != "" })
			t.must(len(said) > 0, "the policies leave no other element alone that the API server accepts")
			for _, c := range said {
				t.Reached()
				if wrong := c.wrong(); wrong != "" {
					t.Errorf("%s: %s", c.What, wrong)
				}
			}
		},
	}}
}

// quiet are the rules about mutations that others see as drift.
func quiet() []Definition {
	return []Definition{{
		ID: "PO-MUT-7", Name: "reapply-is-quiet", Level: framework.Should,
		Title:  "Applying the same manifest again changes nothing.",
		Why:    "GitOps tools apply again and again: each time the object gets a new generation, and controllers act on it.",
		Fix:    "Mutate an update as the creation, and set only what is absent.",
		Source: []string{"https://kep.k8s.io/3962", "https://github.com/open-policy-agent/gatekeeper/issues/2963"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(Applied) {
				if !c.After.Allowed() || !c.Control.After.Allowed() {
					t.LogOnce(c.What + ": " + outcome(c))
					continue
				}
				t.Reached()
				for _, path := range c.Drift() {
					t.Errorf("%s: the policies change it, at %s", c.What, path)
				}
			}
		},
	}, {
		ID: "PO-MUT-8", Name: "owned-templates-stay", Level: framework.Must,
		Title:  "The template of an object with a controller stays as its owner wrote it.",
		Why:    "The owner sees another template than its own, and replaces the object again and again.",
		Fix:    "A matchCondition: !has(object.metadata.ownerReferences)",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/2963", "https://github.com/kubernetes/kubernetes/issues/105844"},
		Check: func(t *T) {
			t.mutates()
			t.must(t.sent(Owned), "no good object has a template of another kind")
			for _, c := range t.each(Owned) {
				sent, _ := c.Request.Object.(*unstructured.Unstructured)
				if !c.After.Allowed() || sent == nil {
					t.LogOnce(c.What + ": " + outcome(c))
					continue
				}
				t.Reached()
				for _, path := range vary.Differences(sent.Object, c.After.Fields()) {
					if path.In(c.Templates) && !c.Control.SetByServer(path) {
						t.Errorf("%s: the policies change it, at %s", c.What, path)
					}
				}
			}
		},
	}}
}

var validatingDenies = regexp.MustCompile(`ValidatingAdmissionPolicy '[^']*'(?: with binding '[^']*')? denied request: `)

// mutable are the groups of requests whose objects policies may change.
func mutable() []Group {
	return []Group{Samples, Fixes, Variants, Generated, Siblings, Elements, Foreign}
}
