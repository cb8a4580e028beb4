package rules

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// admitProperties returns the properties of this file and those around it.
func admitRules() []check.Rule {
	return []check.Rule{
		{
			ID: "A1", Name: "admit-is-idempotent", Level: framework.Must,
			Title:  "Admit, run on an object that it has changed, changes nothing and does not refuse.",
			Why:    "a webhook or policy that changes the object has every plugin called again, on the same record; plugins have appended their work twice, or refused it as a conflict",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/78269", "https://github.com/Azure/azure-workload-identity/issues/1744"},
			Check:  checkIdempotent,
		},
		{
			ID: "A2", Name: "admit-result-round-trips", Level: framework.Must,
			Title:  "What Admit leaves behind is not changed by encoding, defaulting and decoding.",
			Why:    "between two rounds webhooks see the object encoded, and it comes back with defaults; a field that Admit leaves for defaulting is changed by nobody's decision, which looks like a change to everybody who compares",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/104464"},
			Check:  checkStable,
		},
		{
			ID: "A3", Name: "admit-converges", Level: framework.Should,
			Title:  "After somebody else has changed the object, Admit comes to rest within two more rounds.",
			Why:    "that others change the object is what reinvocation is for; a plugin that adds more every time it is called fills the object, as often as it is called",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/64333", "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy"},
			Check:  checkConverges,
		},
		{
			ID: "A4", Name: "admit-keeps-other-fields", Level: framework.Must,
			Title:  "Admit edits the object in its place: what others have put into it, and the plugin knows nothing of, stays.",
			Why:    "attributes have no setter, so a plugin that works on another object writes it over the one it was given; what that other one cannot hold, or did not take over, is lost",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#MutationInterface", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkInPlace,
		},
	}
}

func checkIdempotent(t *check.T) {
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		if objects.IsNil(invocation.Attributes.Object) {
			return
		}
		record := invocation.Attributes.Record()
		first, thrown := t.Call(invocation.Harness, record, framework.Mutating)
		if thrown != nil || first.Err != nil {
			return
		}
		once := check.Copy(first.Object)
		if !check.Equal(first.Before, once) {
			t.Reached()
		}
		// As the API server's own wrapper does it (k8s.io/apiserver/pkg/admission/reinvocation.go).
		record.GetReinvocationContext().SetShouldReinvoke()
		record.GetReinvocationContext().SetIsReinvoke()
		again, thrown := t.Call(invocation.Harness, record, framework.Mutating)
		if thrown == nil {
			reportIfNotIdempotent(invocation, "reinvoked on its own result", once, again)
		}
		// A patch that is tried again, or an object that was exported and is created anew.
		other, ok := invocation.WithNewPlugin()
		if !ok {
			return
		}
		other.Attributes.Object = check.Copy(once)
		if fresh, thrown := t.Call(other.Harness, other.Attributes.Record(), framework.Mutating); thrown == nil {
			reportIfNotIdempotent(invocation, "asked anew, with its own result as object", once, fresh)
		}
	})
}

func reportIfNotIdempotent(t check.Invocation, how string, once runtime.Object, again harness.Result) {
	switch {
	case again.Err != nil:
		t.Errorf("%s: Admit, %s, refused it: %s\nexpected it to admit what it has made itself", t.Request, how, again.Status.Message)
	case !check.Equal(once, again.Object):
		t.Errorf("%s: Admit, %s, changed it once more (- after the first time, + after the second):\n%s", t.Request, how, check.Diff(once, again.Object))
	}
}

// What can be seen of a plugin that edits a copy: nothing, if it forgets the copy (then
// H3 and V2 see that it does not do what it is for). One that writes its copy over the
// object is sound as long as the copy has all that was there. That is what is checked,
// by labels, annotations and finalizers of somebody else's and, in unstructured
// objects, a field that no type has.
func checkInPlace(t *check.T) {
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		if !markForeign(invocation.Attributes.Object) {
			return
		}
		markForeign(invocation.Attributes.OldObject)
		result, ok := invocation.Admit()
		if !ok || check.Equal(result.Before, result.Object) {
			return
		}
		t.Reached()
		for _, lost := range lostMarks(result.Object) {
			t.Errorf("%s: Admit lost the %s that the object had from somebody else: expected it to edit the object in its place; it made (- was, + is):\n%s",
				invocation.Request, lost, check.Diff(result.Before, result.Object))
		}
	})
}

// markForeign puts marks of somebody else's into an object. It returns false of one that
// has no metadata.
func markForeign(object runtime.Object) bool {
	if objects.IsNil(object) {
		return false
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	accessor.SetLabels(withMark(accessor.GetLabels()))
	accessor.SetAnnotations(withMark(accessor.GetAnnotations()))
	accessor.SetFinalizers(append(append([]string{}, accessor.GetFinalizers()...), check.ForeignMark))
	if loose, ok := object.(*unstructured.Unstructured); ok {
		loose.Object[check.ForeignField] = check.ForeignMark
	}
	return true
}

func withMark(values map[string]string) map[string]string {
	marked := map[string]string{check.ForeignMark: "true"}
	for key, value := range values {
		marked[key] = value
	}
	return marked
}

// lostMarks names the marks that are gone.
func lostMarks(object runtime.Object) []string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return []string{"metadata"}
	}
	var lost []string
	if accessor.GetLabels()[check.ForeignMark] == "" {
		lost = append(lost, "label "+check.ForeignMark)
	}
	if accessor.GetAnnotations()[check.ForeignMark] == "" {
		lost = append(lost, "annotation "+check.ForeignMark)
	}
	finalizers := 0
	for _, finalizer := range accessor.GetFinalizers() {
		if finalizer == check.ForeignMark {
			finalizers++
		}
	}
	if finalizers == 0 {
		lost = append(lost, "finalizer "+check.ForeignMark)
	}
	if loose, ok := object.(*unstructured.Unstructured); ok && loose.Object[check.ForeignField] != check.ForeignMark {
		lost = append(lost, "field "+check.ForeignField)
	}
	return lost
}
