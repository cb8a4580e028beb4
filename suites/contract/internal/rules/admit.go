package rules

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// admitRules returns the rules for what Admit does to the object.
func admitRules() []check.Rule {
	return []check.Rule{
		{
			ID: "A1", Name: "admit-is-idempotent", Level: framework.Must,
			Title:  "Admit is idempotent: called for an object that it has already changed, it changes nothing and does not refuse.",
			Why:    "If a webhook or policy changes the object, the API server calls every plugin again with the changed object. Plugins have then added their change twice, or refused it as a conflict.",
			Fix:    "Check whether the object already has the change: set a value only if it differs, add an element only if it is missing.",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/78269", "https://github.com/Azure/azure-workload-identity/issues/1744"},
			Check:  checkIdempotent,
		},
		{
			ID: "A2", Name: "admit-result-round-trips", Level: framework.Must,
			Title:  "The object that Admit returns does not change when it is encoded, defaulted and decoded.",
			Why:    "The API server encodes the object for webhooks, and decodes and defaults their result. A field that Admit leaves unset then changes although no plugin or webhook set it, and every later comparison shows a change.",
			Fix:    "Set each field that defaulting would set, or call the defaulter of ObjectInterfaces.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/104464"},
			Check:  checkRoundTrip,
		},
		{
			ID: "A3", Name: "admit-converges", Level: framework.Should,
			Title:  "After another client has changed the object, Admit reaches a fixed point within two more rounds.",
			Why:    "The API server reinvokes plugins because a webhook has changed the object. If a plugin adds something in each call, the object grows with every round.",
			Fix:    "Compute the change from the object alone, and do not count or compare what the plugin itself has added.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/64333", "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy"},
			Check:  checkConverges,
		},
		{
			ID: "A4", Name: "admit-keeps-other-fields", Level: framework.Must,
			Title:  "Admit edits the object in place and keeps all fields that the plugin does not know.",
			Why:    "Attributes have no setter for the object. A plugin that builds a new object has to copy it over the given one. All fields that it did not copy, or that its type does not have, are then lost.",
			Fix:    "Edit the object that GetObject returns, field by field. Do not build a new one from the fields that the plugin knows.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#MutationInterface", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkInPlace,
		},
		{
			ID: "A5", Name: "user-values-are-kept", Level: framework.Should,
			Title:  "Admit does not overwrite a value that the user has set, and does not remove an element of a list, except in the fields of Subject.Enforced.",
			Why:    "A default is for a field that is not set. If the plugin silently replaces a value, the user gets an object that differs from the manifest, and a controller that applies the manifest tries to correct the object forever.",
			Fix:    "Set a field only if it is empty, append to a list instead of replacing it, or refuse the value of the user. If the plugin overwrites the field on purpose, name it in Subject.Enforced.",
			Source: []string{"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/"},
			Check:  checkUserValues,
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
		// As in k8s.io/apiserver/pkg/admission/reinvocation.go.
		record.GetReinvocationContext().SetShouldReinvoke()
		record.GetReinvocationContext().SetIsReinvoke()
		again, thrown := t.Call(invocation.Harness, record, framework.Mutating)
		if thrown == nil {
			reportIfNotIdempotent(invocation, "reinvoked for its own result", once, again)
		}
		// As for a retried patch, or an object that was exported and is created again.
		other, ok := invocation.WithNewPlugin()
		if !ok {
			return
		}
		other.Attributes.Object = check.Copy(once)
		if fresh, thrown := t.Call(other.Harness, other.Attributes.Record(), framework.Mutating); thrown == nil {
			reportIfNotIdempotent(invocation, "called for a new request with its own result", once, fresh)
		}
	})
}

func reportIfNotIdempotent(t check.Invocation, how string, once runtime.Object, again harness.Result) {
	switch {
	case again.Err != nil:
		t.Errorf("%s: Admit, %s, refused it: %s\nwant: it admits what it has made", t.Request, how, again.Status.Message)
	case !check.Equal(once, again.Object):
		t.Errorf("%s: Admit, %s, changed the object again (- after the first call, + after the second):\n%s", t.Request, how, check.Diff(once, again.Object))
	}
}

// checkRoundTrip starts with objects that are already defaulted, as the objects of an API server
// are. What the second round trip changes is what Admit did not set.
func checkRoundTrip(t *check.T) {
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		given := &invocation.Attributes
		if objects.IsNil(given.Object) {
			return
		}
		codec := roundTripper{invocation.Harness.ObjectInterfaces(given.Object), given.Kind.GroupVersion()}
		defaulted, err := codec.defaulted(given.Object)
		if err != nil {
			t.Logf("ignored %s: %v", invocation.Request, err)
			return
		}
		given.Object = defaulted
		result, ok := invocation.Admit()
		if !ok || check.Equal(result.Before, result.Object) {
			return
		}
		back, err := codec.roundTrip(result.Object)
		if err != nil {
			t.Errorf("%s: the object that Admit made cannot be encoded and decoded: %v", invocation.Request, err)
			return
		}
		t.Reached()
		if !check.Equal(result.Object, back) {
			t.Errorf("%s: the object that Admit made changes when it is encoded as %s, defaulted and decoded. want: Admit sets what defaulting would set (- from Admit, + after decoding):\n%s",
				invocation.Request, codec.version, check.Diff(result.Object, back))
		}
	})
}

const (
	maxForeignEdits = 16 // edits of one object
	maxRounds       = 2  // rounds after which Admit must have reached a fixed point
)

// checkConverges edits the object after Admit as another client would: it reverts a change
// of Admit, or adds to a map or list. It ignores objects for which Admit does not reach a
// fixed point without an edit: admit-is-idempotent (A1) reports those. A plugin may refuse
// the edited object.
func checkConverges(t *check.T) {
	t.EachMutation(func(invocation check.Invocation, first harness.Result) {
		shared, ok := invocation.WithNewPlugin()
		if !ok || !reinvokeUntilStable(shared, check.Copy(first.Object)).converged() {
			return
		}
		for number := range maxForeignEdits {
			edited := check.Copy(first.Object)
			edit := check.ForeignEdit{Index: number}
			edit.Apply(check.Copy(first.Before), edited)
			if edit.Name == "" {
				return
			}
			after := reinvokeUntilStable(shared, check.Copy(edited))
			if after.admitted {
				t.Reached()
			}
			if after.converged() || !after.admitted {
				continue
			}
			// The reason may be an earlier request: try again with a new plugin.
			fresh, ok := invocation.WithNewPlugin()
			if !ok {
				return
			}
			if after = reinvokeUntilStable(fresh, edited); after.admitted && !after.converged() {
				t.Errorf("%s: after Admit another client %s. Admit, reinvoked, then changes the object in each of %d rounds. want: a fixed point after %d rounds (- before the last round, + after it):\n%s",
					invocation.Request, edit.Name, maxRounds+1, maxRounds, after.change)
			}
		}
	})
}

// reinvoked is the result of several reinvocations.
type reinvoked struct {
	// admitted is false if the plugin refused or panicked.
	admitted bool
	// change is what the last round changed; empty means nothing.
	change string
}

func (r reinvoked) converged() bool { return r.admitted && r.change == "" }

// reinvokeUntilStable calls Admit for the request, replaces the object by the edited one, and
// reinvokes Admit until it changes nothing.
func reinvokeUntilStable(t check.Invocation, edited runtime.Object) reinvoked {
	given, ok := t.AttributesFor(t.Harness, t.Request, framework.Mutating)
	if !ok {
		return reinvoked{}
	}
	record := given.Record()
	result, thrown := t.Call(t.Harness, record, framework.Mutating)
	if thrown != nil || result.Err != nil || reflect.TypeOf(result.Object) != reflect.TypeOf(edited) {
		return reinvoked{}
	}
	reflect.ValueOf(record.GetObject()).Elem().Set(reflect.ValueOf(edited).Elem())
	record.GetReinvocationContext().SetShouldReinvoke()
	record.GetReinvocationContext().SetIsReinvoke()
	for range maxRounds + 1 {
		result, thrown = t.Call(t.Harness, record, framework.Mutating)
		if thrown != nil || result.Err != nil {
			return reinvoked{}
		}
		if check.Equal(result.Before, result.Object) {
			return reinvoked{admitted: true}
		}
	}
	return reinvoked{true, check.Diff(result.Before, result.Object)}
}

// checkInPlace adds labels, annotations and finalizers of another client to the object, and an
// unknown field if the object is unstructured. Admit must keep all of these. A plugin that replaces
// the content of the object by its own copy passes if the copy is complete. A plugin that edits a
// copy and drops the copy changes nothing: refusals-belong-in-validate (H3) and
// validate-accepts-what-admit-made (V2) report that.
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
			t.Errorf("%s: Admit lost the %s, which another client had set. want: it edits the object in place. It changed (- was, + is):\n%s",
				invocation.Request, lost, check.Diff(result.Before, result.Object))
		}
	})
}

// markForeign adds the marks of another client to an object. It returns false if the object
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

// lostMarks returns the marks that an object does not have any more.
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

// checkUserValues sets, one at a time, each field that Admit sets, and adds an element to each list to which
// Admit adds one. Admit must keep the value, or the plugin refuses it.
func checkUserValues(t *check.T) {
	reported, late := map[string]bool{}, t.HalfBudget()
	t.EachMutation(func(invocation check.Invocation, result harness.Result) {
		for _, field := range check.ChangedFields(result.Before, result.Object) {
			if reported[field.Path] || isEnforced(t.Subject.Enforced, field.Path) || late() {
				continue
			}
			if field.Changed {
				reported[field.Path] = true
				t.Errorf("%s: Admit changed %s, which the user had set. want: it keeps the value or refuses it, or Subject.Enforced has the field (- was, + is):\n%s",
					invocation.Request, field.Path, check.Diff(result.Before, result.Object))
				continue
			}
			again, ok := invocation.WithNewPlugin()
			if !ok || !field.Set(again.Attributes.Object) {
				continue
			}
			t.Reached()
			if got, admitted := again.Admit(); admitted && !field.Kept(got.Object) {
				reported[field.Path] = true
				t.Errorf("%s: the user sets %s to another value than Admit would, and Admit overwrites it. want: it keeps the value or refuses it, or Subject.Enforced has the field (- was, + is):\n%s",
					invocation.Request, field.Path, check.Diff(got.Before, got.Object))
			}
		}
	})
}

// listIndex is the index of a list in the path of a field.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// isEnforced reports whether a path is one of the fields, or below one. A field with [] is for
// every element of the list.
func isEnforced(fields []string, path string) bool {
	return slices.ContainsFunc(fields, func(field string) bool {
		for _, each := range []string{path, listIndex.ReplaceAllString(path, "[]")} {
			rest, below := strings.CutPrefix(each, field)
			if below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return true
			}
		}
		return false
	})
}
