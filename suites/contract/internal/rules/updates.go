package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// updatesRules returns the rule for updates that change nothing of what the plugin is about.
func updatesRules() []check.Rule {
	return []check.Rule{{
		ID: "Y3", Name: "unrelated-updates-are-admitted", Level: framework.Should,
		Title:  "An update that changes only a label, an annotation or a finalizer is admitted, also if the plugin would refuse the creation of the object today: for its content, or because of a limit that the stored objects have reached.",
		Why:    "Objects are older than the plugin, its configuration and the objects around them. If each update is refused, controllers can neither label the object nor remove its finalizers, and an object that is counted itself can never be changed at its limit.",
		Fix:    "For an update, refuse only what it changes: compare with GetOldObject. Check limits only for creations, or leave out the object itself.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/48885", "https://github.com/openshift/origin/issues/14149", "https://github.com/kyverno/kyverno/issues/8815"},
		Check:  checkUnrelatedUpdates,
	}}
}

// unrelatedUpdates returns updates of a stored object, by what they do. Without a resource version, it could be an update that
// creates the object.
func unrelatedUpdates(request framework.Request, stored runtime.Object) map[string]framework.Request {
	stored = check.Copy(stored)
	if accessor, err := meta.Accessor(stored); err == nil {
		accessor.SetResourceVersion("1")
		accessor.SetUID("contract")
	}
	all := map[string]framework.Request{
		"removes the last finalizer of an object in deletion": inDeletion(request, stored, func(object metav1.Object) { object.SetFinalizers(nil) }),
	}
	for what, edit := range map[string]func(metav1.Object){
		"adds an annotation":  func(object metav1.Object) { object.SetAnnotations(withMark(object.GetAnnotations())) },
		"adds a label":        func(object metav1.Object) { object.SetLabels(withMark(object.GetLabels())) },
		"removes a finalizer": func(object metav1.Object) { object.SetFinalizers(nil) },
	} {
		update := inDeletion(request, stored, edit)
		for _, object := range []runtime.Object{update.Object, update.InProcess.OldObject} {
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetDeletionTimestamp(nil)
				accessor.SetDeletionGracePeriodSeconds(nil)
			}
		}
		all[what] = update
	}
	return all
}

func checkUnrelatedUpdates(t *check.T) {
	if !t.Plugin().Plugin().Handles(admission.Update) {
		t.Unsupported("the plugin does not handle %s", admission.Update)
	}
	shared := t.Probe(func() *harness.Harness { return t.Plugin() })
	eachRefusedObject(t, func(refused framework.Request, admitted runtime.Object) bool {
		name := nameOf(refused.Object)
		same := refused
		same.Object = address{namespace: name.Namespace, name: name.Name}.moved(admitted)
		result, ok := shared.Send(same)
		if refused.Verb != framework.VerbCreate || name.Name == "" || !ok || result.Err != nil {
			return false // the plugin does not refuse it for the object
		}
		good := unrelatedUpdates(refused, result.Object)
		for what, update := range unrelatedUpdates(refused, refused.Object) {
			if !shared.Admits(good[what]) {
				continue // such updates are not allowed at all
			}
			t.Reached()
			if found := shared.Confirmed(func(p *check.Probe) string {
				return map[bool]string{true: what}[p.Refuses(update) && p.Admits(good[what])]
			}); found != "" {
				t.Errorf("%s, of an object whose creation the plugin refuses: got a refusal of an update that only %s. want: it is admitted", update, found)
			}
		}
		return true
	})
	for _, request := range t.Subject.Allow {
		if request.Verb == framework.VerbCreate && request.Subresource == "" {
			checkCounted(t, request)
		}
	}
}

// copiesForLimit is the highest limit that checkCounted can reach.
const copiesForLimit = 12

// checkCounted stores copies of an object until the plugin refuses one more. Then it must still admit an update of the
// first copy.
func checkCounted(t *check.T, request framework.Request) {
	w := t.World()
	h := t.PluginIn(w)
	result, ok := t.Do(h, request)
	a, known := t.AttributesFor(h, request, framework.Mutating)
	client, err := dynamic.NewForConfig(w.TestRESTConfig())
	if !ok || result.Err != nil || !known || err != nil {
		return
	}
	stored, one := request, request
	stored.Object, one.Name = result.Object, "contract-0"
	update := unrelatedUpdates(one, withName(result.Object, one.Name, ""))["adds an annotation"]
	object, _ := t.Unstructured(h, stored, a.Kind)
	loose, ok := object.(*unstructured.Unstructured)
	if result, admitted := t.Do(h, update); !ok || !admitted || result.Err != nil {
		return
	}
	for n := range copiesForLimit {
		loose.SetName(fmt.Sprintf("contract-%d", n))
		if _, err := client.Resource(a.Resource).Namespace(a.Namespace).Create(t.Context(), loose, metav1.CreateOptions{}); err != nil {
			return // the World does not have the resource
		}
		if result, ok := t.Do(h, request); !ok || result.Err == nil {
			continue
		}
		p := t.Probe(func() *harness.Harness { return t.PluginIn(w) }) // it has seen no other requests
		if p.Admits(request) {
			return
		}
		t.Reached()
		if p.Refuses(update) {
			t.Errorf("%s, with %d such objects in the World: the plugin refuses one more, and also an update of the first that only adds an annotation. want: an update is not counted", request, n+1)
		}
		return
	}
}
