package rules

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// deletionRules returns the rules for objects in deletion and for deletes of collections.
func deletionRules() []check.Rule {
	return []check.Rule{
		{
			ID: "Y1", Name: "deleting-objects-can-be-updated", Level: framework.Must,
			Title:  "An update of an object in deletion is neither refused nor mutated, if the plugin has admitted the object as it is.",
			Why:    "A controller that cannot remove its finalizer retries forever, and the object and its namespace are never deleted.",
			Fix:    "Return nil for an update if the object has a deletionTimestamp, or compare only the fields that changed.",
			Source: []string{"https://github.com/openshift/origin/issues/15188", "https://github.com/kubernetes/kubernetes/issues/48884"},
			Check:  checkDeletingUpdates,
		},
		{
			ID: "Y2", Name: "collections-can-be-deleted", Level: framework.Must,
			Title:  "A delete from a deletecollection request, which has no name, gets the same response as a delete of the object.",
			Why:    "The namespace controller sends deletecollection requests. If the plugin refuses them, no namespace with such an object can be deleted. If it does not check them, users can bypass the plugin with them.",
			Fix:    "Use the name of GetOldObject, and not GetName, for DELETE.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/66535"},
			Check:  checkCollections,
		},
	}
}

// inDeletion returns an update of an object whose deletion waits for a finalizer.
func inDeletion(request framework.Request, stored runtime.Object, edit func(metav1.Object)) framework.Request {
	old := stored.DeepCopyObject()
	startDeletion(old)
	edited := old.DeepCopyObject()
	if accessor, err := meta.Accessor(edited); err == nil {
		edit(accessor)
	}
	request.Verb, request.Object, request.InProcess.OldObject = framework.VerbUpdate, edited, old
	request.InProcess.Options, request.InProcess.CreateOnUpdate, request.DryRun = nil, false, false
	return request
}

// stored returns copies of requests in which the old object is the object that an API server would
// have stored. For a create or update that the plugin admits, this is the object after Admit. For
// other requests it is the object as given. It leaves out creates and updates of Subject.Allow that
// the plugin refuses this time, for example because it is not ready on a busy machine.
func stored(t *check.T, requests []framework.Request) []framework.Request {
	var all []framework.Request
	for n, request := range requests { // the requests of Subject.Allow come first
		if request.Subresource != "" || request.Verb == framework.VerbConnect {
			continue
		}
		object := request.Object
		if objects.IsNil(object) {
			object = request.InProcess.OldObject
		} else if result, ok := t.Do(t.Plugin(), request); ok && result.Err == nil {
			object = result.Object
		} else if n < len(t.Subject.Allow) {
			t.LogOnce(fmt.Sprintf("ignored %s: it was not admitted", request))
			continue
		}
		if accessor, err := meta.Accessor(object); objects.IsNil(object) || err != nil || accessor.GetName() == "" {
			continue
		}
		request.InProcess.OldObject = check.Copy(object)
		all = append(all, request)
	}
	return all
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
	for _, request := range stored(t, t.Subject.Allow) {
		if objects.IsNil(request.Object) {
			continue
		}
		for _, each := range edits {
			update := inDeletion(request, request.InProcess.OldObject, each.edit)
			result, ok := t.Do(t.Plugin(), update)
			if !ok {
				continue
			}
			t.Reached()
			switch {
			case result.Err != nil:
				t.Errorf("%s, of an object in deletion, which only %s: got %s, want admitted", update, each.what, refusalText(result.Status))
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
		now, seconds := metav1.NewTime(metav1.Now().Truncate(time.Second)), int64(0) // as it is encoded
		accessor.SetDeletionTimestamp(&now)
		accessor.SetDeletionGracePeriodSeconds(&seconds)
		accessor.SetFinalizers([]string{check.ForeignMark})
	}
}

func checkCollections(t *check.T) {
	if !t.Plugin().Plugin().Handles(admission.Delete) {
		t.Unsupported("the plugin does not handle %s", admission.Delete)
	}
	for _, request := range stored(t, t.Requests()) {
		one := request
		one.Verb, one.Object = framework.VerbDelete, nil
		one.InProcess.Options, one.InProcess.CreateOnUpdate = nil, false
		all := one
		all.Verb, all.Name = framework.VerbDeleteCollection, ""
		if given, ok := t.AttributesFor(t.Plugin(), one, framework.Validating); !ok || given.Resource.GroupResource() == corev1.Resource("namespaces") {
			continue // API servers do not serve the delete of a collection of namespaces
		}
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
