package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// idempotenceRules returns the rules for calls that are repeated.
func idempotenceRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-IDEM-1", Name: "twice-is-once", Level: framework.Must,
			Title:  "A webhook that is called for its own result does not change it again.",
			Why:    "The API server calls a webhook again if another one has changed the object, and controllers create objects from objects that the webhook has already changed. Sidecars were then injected twice.",
			Fix:    "Check whether the object already has the change before you add it.",
			Source: []string{goodPractices, "https://github.com/istio/istio/issues/25931"},
			Check:  checkTwice,
		},
		{
			ID: "WH-IDEM-2", Name: "own-output-is-allowed", Level: framework.Must,
			Title:  "What the webhook made of an object is allowed by it and by the other webhooks of the Subject, as a new object and as an update.",
			Why:    "Otherwise the object cannot be restored from a backup, moved to another cluster or changed afterwards.",
			Fix:    "Let validation accept each value that mutation sets.",
			Source: []string{goodPractices},
			Check:  checkOwnOutput,
		},
		{
			ID: "WH-IDEM-3", Name: "order-does-not-matter", Level: framework.Should,
			Title:  "What another webhook adds afterwards is treated as if it had been there before. For reinvocationPolicy IfNeeded, this is a MUST.",
			Why:    "The order of mutating webhooks is not defined. A webhook that stops at its own mark leaves out the containers that another one adds later.",
			Fix:    "Decide for each element of a list separately, not by a mark on the object.",
			Source: []string{"https://github.com/aws/amazon-eks-pod-identity-webhook/issues/61", "https://github.com/istio/istio/pull/45233"},
			Check:  checkOrder,
		},
		{
			ID: "WH-IDEM-4", Name: "same-review-same-answer", Level: framework.Must,
			Title:  "The same review gets the same answer each time and from each replica, whatever the order of the keys in its JSON.",
			Why:    "A different order of a list is a different object: workloads are rolled out again, and GitOps tools see changes without end.",
			Fix:    "Sort what comes from a map before you add it to a list.",
			Source: []string{"https://github.com/chaos-mesh/chaos-mesh/pull/2183", "https://github.com/gardener/gardener/pull/3320"},
			Check:  checkSameAnswer,
		},
	}
}

func checkTwice(t *check.T) {
	mutating(t)
	for _, c := range t.Webhook.Allow {
		first, ok := t.Decide(c.Request)
		if !ok || !first.Response.Allowed || first.Object == nil || !t.Called(withObject(c.Request, first.Object)) {
			continue
		}
		second, ok := t.Decide(withObject(c.Request, first.Object))
		if !ok || !second.Response.Allowed {
			continue // WH-IDEM-2
		}
		t.Reached()
		if diff := t.DiffObjects(first.Object, second.Object); diff != "" {
			t.Differs("%s: called again for its own result, the webhook changes it again: %s", c, diff)
		}
	}
}

// mutating ends the check as unsupported if the webhook only validates.
func mutating(t *check.T) {
	if t.Kind == check.Validating {
		t.Unsupported("the webhook only validates")
	}
}

func checkOwnOutput(t *check.T) {
	eachObject(t, func(c check.Case, d check.Decision) {
		for _, w := range t.Webhooks {
			for _, request := range []reach.Request{withObject(c.Request, d.Object), updateOf(c.Request, d.Object, nil)} {
				if ok, _ := t.Reaches(t.Context(), w, request); !ok {
					continue
				}
				a := t.Send(t.Context(), w, request)
				if a.NoDecision() != "" {
					continue
				}
				if w == t.Webhook || t.Kind == check.Mutating {
					t.Reached()
				}
				if !a.Response.Allowed && t.AllowedBefore(w, c) {
					t.Differs("%s: the webhook allows it, but %s of its result is %s by %s", c, request.Operation, a.Verdict(), nameOf(w))
				}
			}
		}
	})
}

func nameOf(w *check.Webhook) string {
	if w.Name == "" {
		return "the webhook"
	}
	return w.Name
}

func checkOrder(t *check.T) {
	mutating(t)
	if policy := t.Config.ReinvocationPolicy; policy != nil && *policy == admissionregistrationv1.IfNeededReinvocationPolicy {
		t.Raise()
	}
	applies := false
	eachObject(t, func(c check.Case, once check.Decision) {
		lists := containerLists(c.Request.Object)
		if len(lists) == 0 {
			return
		}
		applies = true
		late, ok := t.Decide(withObject(c.Request, once.Object))
		if !ok || !late.Response.Allowed || t.DiffObjects(once.Object, late.Object) != "" {
			return // WH-IDEM-1
		}
		for _, path := range lists {
			add := func(u *unstructured.Unstructured) { addContainer(u, path, c.Request.Object) }
			before, ok := t.Decide(withObject(c.Request, changed(c.Request.Object, add)))
			after, okAfter := t.Decide(withObject(c.Request, changed(once.Object, add)))
			if !ok || !okAfter || !before.Response.Allowed || !after.Response.Allowed {
				continue
			}
			t.Reached()
			if diff := t.DiffObjects(sortedByName(before.Object), sortedByName(after.Object)); diff != "" {
				t.Differs("%s: a container that another webhook adds after this one is treated differently from one that it adds before: %s", c, diff)
			}
		}
	})
	if !applies {
		t.Unsupported("no sample that the webhook allows has containers, to which another webhook could add one")
	}
}

// containerLists returns the paths of the lists of containers of an object.
func containerLists(object map[string]any) [][]string {
	var found [][]string
	for _, path := range [][]string{{"spec", "containers"}, {"spec", "template", "spec", "containers"}, {"spec", "jobTemplate", "spec", "template", "spec", "containers"}} {
		if containerAt(object, path, 0) != nil {
			found = append(found, path)
		}
	}
	return found
}

// addContainer adds a copy of the first container of the original, with another name.
func addContainer(u *unstructured.Unstructured, path []string, original map[string]any) {
	containers, _ := valueAt(u.Object, path).([]any)
	copied := maps.Clone(containerAt(original, path, 0))
	copied["name"] = "contract-added"
	_ = unstructured.SetNestedSlice(u.Object, append(containers, copied), path...) // the list exists
}

// sortedByName returns a copy of an object whose lists of named elements are sorted.
func sortedByName(object map[string]any) map[string]any {
	return changed(object, func(u *unstructured.Unstructured) { sortLists(u.Object) })
}

func sortLists(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			sortLists(child)
		}
	case []any:
		for _, child := range value {
			sortLists(child)
		}
		slices.SortStableFunc(value, func(a, b any) int { return bytes.Compare([]byte(nameIn(a)), []byte(nameIn(b))) })
	}
}

func nameIn(value any) string {
	fields, _ := value.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

func checkSameAnswer(t *check.T) {
	const times = 20
	enough := t.HalfBudget()
	t.EachDecided(func(c check.Case, want check.Decision) {
		t.Reached()
		for n := range times {
			if n > 0 && enough() {
				break
			}
			got, ok := t.Decide(c.Request)
			if text := t.Difference(want, got); ok && text != "" {
				t.Errorf("%s: answer %d to the same request differs from the first: %s", c, n+2, text)
				break
			}
		}
		if got, ok := t.DecideBody(c, reversed(t.Review(c.Request))); ok {
			if text := t.Difference(want, got); text != "" {
				t.Errorf("%s: with the keys of its JSON in another order, the answer differs: %s", c, text)
			}
		}
		t.EachReplica(c.Request, func(address string, got check.Decision) {
			if text := t.Difference(want, got); text != "" {
				t.Errorf("%s: the answer of the replica at %s differs: %s", c, address, text)
			}
		})
	})
}

// reversed encodes JSON values with the keys of each object in reverse order.
func reversed(value any) []byte {
	switch value := value.(type) {
	case map[string]any:
		var b bytes.Buffer
		b.WriteByte('{')
		for i, key := range slices.Backward(slices.Sorted(maps.Keys(value))) {
			b.Write(encoded(key))
			b.WriteByte(':')
			b.Write(reversed(value[key]))
			if i > 0 {
				b.WriteByte(',')
			}
		}
		b.WriteByte('}')
		return b.Bytes()
	case []any:
		var b bytes.Buffer
		b.WriteByte('[')
		for i, each := range value {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(reversed(each))
		}
		b.WriteByte(']')
		return b.Bytes()
	default:
		return encoded(value)
	}
}

func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		return []byte("null") // it is a JSON value
	}
	return data
}
