package contract

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
)

// admitProperties returns the properties of this file and those around it.
func admitProperties() []Property {
	return []Property{
		{
			ID: "A1", Level: framework.Must,
			Title:  "Admit, run on an object that it has changed, changes nothing and does not refuse.",
			Why:    "a webhook or policy that changes the object has every plugin called again, on the same record; plugins have appended their work twice, or refused it as a conflict",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/78269", "https://github.com/Azure/azure-workload-identity/issues/1744"},
			Check:  checkIdempotent,
		},
		{
			ID: "A2", Level: framework.Must,
			Title:  "What Admit leaves behind is not changed by encoding, defaulting and decoding.",
			Why:    "between two rounds webhooks see the object encoded, and it comes back with defaults; a field that Admit leaves for defaulting is changed by nobody's decision, which looks like a change to everybody who compares",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/104464"},
			Check:  checkStable,
		},
		{
			ID: "A3", Level: framework.Should,
			Title:  "After somebody else has changed the object, Admit comes to rest within two more rounds.",
			Why:    "that others change the object is what reinvocation is for; a plugin that adds more every time it is called fills the object, as often as it is called",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/64333", "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy"},
			Check:  checkConverges,
		},
		{
			ID: "A4", Level: framework.Must,
			Title:  "Admit edits the object in its place: what others have put into it, and the plugin knows nothing of, stays.",
			Why:    "attributes have no setter, so a plugin that works on another object writes it over the one it was given; what that other one cannot hold, or did not take over, is lost",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#MutationInterface", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkInPlace,
		},
	}
}

func checkIdempotent(t *Trial) {
	t.each(t.Seeds(), framework.Mutating, func(turn turn) {
		if objects.IsNil(turn.given.object) {
			return
		}
		record := turn.given.record()
		first, thrown := t.call(turn.h, record, framework.Mutating)
		if thrown != nil || first.Err != nil {
			return
		}
		once := copied(first.Object)
		if !same(first.Before, once) {
			t.Reached()
		}
		// As the API server's own wrapper does it (k8s.io/apiserver/pkg/admission/reinvocation.go).
		record.GetReinvocationContext().SetShouldReinvoke()
		record.GetReinvocationContext().SetIsReinvoke()
		again, thrown := t.call(turn.h, record, framework.Mutating)
		if thrown == nil {
			turn.sameAgain("reinvoked on its own result", once, again)
		}
		// A patch that is tried again, or an object that was exported and is created anew.
		other, ok := turn.another()
		if !ok {
			return
		}
		other.given.object = copied(once)
		if fresh, thrown := t.call(other.h, other.given.record(), framework.Mutating); thrown == nil {
			turn.sameAgain("asked anew, with its own result as object", once, fresh)
		}
	})
}

func (t turn) sameAgain(how string, once runtime.Object, again harness.Result) {
	switch {
	case again.Err != nil:
		t.Errorf("%s: Admit, %s, refused it: %s\nexpected it to admit what it has made itself", t.request, how, again.Status.Message)
	case !same(once, again.Object):
		t.Errorf("%s: Admit, %s, changed it once more (- after the first time, + after the second):\n%s", t.request, how, diff(once, again.Object))
	}
}

// What can be seen of a plugin that edits a copy: nothing, if it forgets the copy (then
// H3 and V2 see that it does not do what it is for). One that writes its copy over the
// object is sound as long as the copy has all that was there. That is what is checked,
// by labels, annotations and finalizers of somebody else's and, in unstructured
// objects, a field that no type has.
func checkInPlace(t *Trial) {
	t.each(t.Seeds(), framework.Mutating, func(turn turn) {
		if !markForeign(turn.given.object) {
			return
		}
		markForeign(turn.given.old)
		result, ok := turn.admitted()
		if !ok || same(result.Before, result.Object) {
			return
		}
		t.Reached()
		for _, lost := range lostMarks(result.Object) {
			t.Errorf("%s: Admit lost the %s that the object had from somebody else: expected it to edit the object in its place; it made (- was, + is):\n%s",
				turn.request, lost, diff(result.Before, result.Object))
		}
	})
}

// foreignMark is the key or value of what somebody else has put into an object.
const (
	foreignMark  = "contract.example.com/foreign"
	foreignField = "contractForeign"
)

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
	accessor.SetFinalizers(append(append([]string{}, accessor.GetFinalizers()...), foreignMark))
	if loose, ok := object.(*unstructured.Unstructured); ok {
		loose.Object[foreignField] = foreignMark
	}
	return true
}

func withMark(values map[string]string) map[string]string {
	marked := map[string]string{foreignMark: "true"}
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
	if accessor.GetLabels()[foreignMark] == "" {
		lost = append(lost, "label "+foreignMark)
	}
	if accessor.GetAnnotations()[foreignMark] == "" {
		lost = append(lost, "annotation "+foreignMark)
	}
	finalizers := 0
	for _, finalizer := range accessor.GetFinalizers() {
		if finalizer == foreignMark {
			finalizers++
		}
	}
	if finalizers == 0 {
		lost = append(lost, "finalizer "+foreignMark)
	}
	if loose, ok := object.(*unstructured.Unstructured); ok && loose.Object[foreignField] != foreignMark {
		lost = append(lost, "field "+foreignField)
	}
	return lost
}
