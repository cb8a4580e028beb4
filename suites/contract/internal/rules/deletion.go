package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// deletionRules returns the rules for objects in deletion and for deletes of collections.
func deletionRules() []check.Rule {
	return []check.Rule{
		{
			ID: "Y1", Name: "deleting-objects-can-be-updated", Level: framework.Must,
			Title:  "An update of an object in deletion is not refused and not mutated, also if the plugin would refuse the object.",
			Why:    "A controller that cannot remove its finalizer retries forever, and the object and its namespace are never deleted. That happens to objects that are older than the plugin or its configuration.",
			Source: []string{"https://github.com/openshift/origin/issues/15188", "https://github.com/kubernetes/kubernetes/issues/48884"},
			Check:  checkDeletingUpdates,
		},
		{
			ID: "Y2", Name: "collections-can-be-deleted", Level: framework.Must,
			Title:  "The delete of a collection, which has no name, gets the same answer as the delete of the object.",
			Why:    "The namespace controller deletes collections. If they are refused, no namespace with such an object is ever deleted; if they are not checked, they are a way around the plugin.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/66535"},
			Check:  checkCollections,
		},
	}
}

// stored returns the objects of the requests as they could be stored: those that Admit has made
// of admitted creates, those of refused creates, and the old objects of other requests.
func stored(t *check.T, also func(admission.Operation) bool) []framework.Request {
	var all []framework.Request
	h := t.Plugin()
	if !h.Plugin().Handles(admission.Update) && !h.Plugin().Handles(admission.Delete) {
		return nil
	}
	for _, request := range t.Requests() {
		given, ok := t.AttributesFor(h, request, framework.Mutating)
		if !ok || request.Subresource != "" || !also(given.Operation) {
			continue
		}
		object := request.InProcess.OldObject
		if given.Operation == admission.Create {
			object = request.Object
			if result, ok := t.Do(t.Plugin(), request); ok && result.Err == nil && !request.InProcess.Unstructured {
				object = result.Object
			}
		}
		if accessor, err := meta.Accessor(object); objects.IsNil(object) || err != nil || accessor.GetName() == "" {
			continue
		}
		request.InProcess.OldObject = check.Copy(object)
		all = append(all, request)
	}
	return all
}

func isCreateOrUpdate(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

func checkDeletingUpdates(t *check.T) {
	if !t.Plugin().Plugin().Handles(admission.Update) {
		t.Unsupported("the plugin does not handle %s", admission.Update)
	}
	edits := []struct {
		what string
		edit func(metav1.Object)
	}{
		{"removes the last finalizer", func(object metav1.Object) { object.SetFinalizers(nil) }},
		{"adds an annotation", func(object metav1.Object) { object.SetAnnotations(withMark(object.GetAnnotations())) }},
	}
	for _, request := range stored(t, isCreateOrUpdate) {
		for _, each := range edits {
			old := request.InProcess.OldObject.DeepCopyObject()
			startDeletion(old)
			edited := old.DeepCopyObject()
			if accessor, err := meta.Accessor(edited); err == nil {
				each.edit(accessor)
			}
			update := request
			update.Verb, update.Object, update.InProcess.OldObject = framework.VerbUpdate, edited, old
			update.InProcess.Options, update.InProcess.CreateOnUpdate, update.DryRun = nil, false, false
			update.User = &framework.User{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
			result, ok := t.Do(t.Plugin(), update)
			if !ok {
				continue
			}
			t.Reached()
			switch {
			case result.Err != nil:
				t.Errorf("%s, of an object in deletion, by %s, which only %s: got %s, want admitted", update, user.APIServerUser, each.what, refusalText(result.Status))
			case !check.Equal(result.Before, result.Object):
				t.Errorf("%s, of an object in deletion, which only %s: the plugin changed the object, want no change (- was, + is):\n%s", update, each.what, check.Diff(result.Before, result.Object))
			}
			if t.Failed() {
				return
			}
		}
	}
}

// startDeletion marks an object as one whose deletion waits for a finalizer.
func startDeletion(object runtime.Object) {
	if accessor, err := meta.Accessor(object); err == nil {
		now, seconds := metav1.Now(), int64(0)
		accessor.SetDeletionTimestamp(&now)
		accessor.SetDeletionGracePeriodSeconds(&seconds)
		accessor.SetFinalizers([]string{check.ForeignMark})
	}
}

func checkCollections(t *check.T) {
	if !t.Plugin().Plugin().Handles(admission.Delete) {
		t.Unsupported("the plugin does not handle %s", admission.Delete)
	}
	anything := func(operation admission.Operation) bool { return operation != admission.Connect }
	for _, request := range stored(t, anything) {
		one := request
		one.Verb, one.Object = framework.VerbDelete, nil
		one.InProcess.Options, one.InProcess.CreateOnUpdate = nil, false
		all := one
		all.Verb, all.Name = framework.VerbDeleteCollection, ""
		expected, got := check.Send(t.Context(), t.Plugin(), one), check.Send(t.Context(), t.Plugin(), all)
		if expected.Err != nil || got.Err != nil {
			t.LogOnce(fmt.Sprintf("ignored %s: %v, %v", request, expected.Err, got.Err))
			continue
		}
		t.Reached()
		if (expected.Result.Err == nil) != (got.Result.Err == nil) {
			t.Errorf("%s of %s: got %s, want what the delete of the object alone gets: %s", all, one, got, expected)
		}
	}
}
