package rules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// unrelatedRules returns the rules for differences that do not matter to a plugin.
func unrelatedRules() []check.Rule {
	return []check.Rule{
		{
			ID: "S5", Name: "generated-names-do-not-matter", Level: framework.Should,
			Title:  "A create with generateName gets the same response as a create with a name.",
			Why:    "Controllers create nearly all pods with generateName. The name is generated after Admit, so a plugin that treats an object without a name as invalid, or as none of its objects, does not handle these pods.",
			Fix:    "Let the result not depend on GetName for a create. If the plugin needs the name, use it in Validate.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/22566", "https://github.com/apache/yunikorn-k8shim/pull/79", "https://github.com/kyverno/kyverno/issues/13583"},
			Check:  checkGeneratedNames,
		},
		{
			ID: "S6", Name: "unrelated-labels-do-not-matter", Level: framework.Should,
			Title:  "A label and an annotation that the plugin does not know do not change the response.",
			Why:    "Users and tools put their own labels and annotations on every object. A plugin that tests whether an object has labels, and not which ones, then omits its defaults or its checks.",
			Fix:    "Look up the keys that the plugin knows, and ignore all others. Test a map for a key, and not for nil.",
			Source: []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"},
			Check:  checkUnrelatedLabels,
		},
		{
			ID: "S7", Name: "other-namespaces-do-not-matter", Level: framework.Should,
			Title:  "Objects in other namespaces do not change the response.",
			Why:    "A plugin that lists the objects of all namespaces uses the defaults and limits of another tenant, and a right in one namespace opens another one. Tests with one namespace do not show it.",
			Fix:    "List and get with the namespace of the request, and index caches by namespace and name.",
			Source: []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/"},
			Check:  checkOtherNamespaces,
		},
	}
}

// checkGeneratedNames sends each create with its name, with another name and with a generateName. If the
// response depends on which name it is, the plugin is about names.
func checkGeneratedNames(t *check.T) {
	for _, request := range t.Requests() {
		accessor, err := meta.Accessor(request.Object)
		if request.Verb != framework.VerbCreate || request.Subresource != "" || objects.IsNil(request.Object) || err != nil || accessor.GetName() == "" {
			continue
		}
		send := func(name, generateName string) check.Response {
			named := request
			named.Name, named.Object = name, withName(request.Object, name, generateName)
			got := check.Send(t.Context(), t.Plugin(), named)
			got.Result.Object = withName(got.Result.Object, "", "")
			return got
		}
		name := accessor.GetName()
		expected, other, got := send(name, ""), send(name+"-other", ""), send("", name+"-")
		if expected.Err != nil || got.Err != nil || !check.SameVerdict(expected, other) {
			continue
		}
		t.Reached()
		difference := check.Difference(expected, got)
		inObject := check.SameVerdict(expected, got) && check.Difference(expected, other) != ""
		if difference == "" || inObject || t.Ever(func() bool { return check.Difference(expected, send(name, "")) != "" }) {
			continue
		}
		t.Errorf("%s, with generateName instead of a name: %s", request, difference)
	}
}

// withName returns a copy of an object with other names.
func withName(object runtime.Object, name, generateName string) runtime.Object {
	named := check.Copy(object)
	if accessor, err := meta.Accessor(named); err == nil && named != nil {
		accessor.SetName(name)
		accessor.SetGenerateName(generateName)
	}
	return named
}

func checkUnrelatedLabels(t *check.T) {
	for _, request := range t.Requests() {
		labeled := request
		labeled.Object, labeled.InProcess.OldObject = withMarks(request.Object), withMarks(request.InProcess.OldObject)
		if check.Equal(labeled.Object, request.Object) && check.Equal(labeled.InProcess.OldObject, request.InProcess.OldObject) {
			continue
		}
		expected, got := check.Send(t.Context(), t.Plugin(), request), check.Send(t.Context(), t.Plugin(), labeled)
		if expected.Err != nil || got.Err != nil {
			continue
		}
		t.Reached()
		expected.Result.Object, got.Result.Object = withMarks(expected.Result.Object), withMarks(got.Result.Object)
		difference := check.Difference(expected, got)
		if difference == "" || t.Ever(func() bool {
			again := check.Send(t.Context(), t.Plugin(), request)
			again.Result.Object = withMarks(again.Result.Object)
			return check.Difference(expected, again) != ""
		}) {
			continue
		}
		t.Errorf("%s, with the label and the annotation %s: %s", request, check.ForeignMark, difference)
	}
}

// withMarks returns a copy of an object with a label and an annotation of another client.
func withMarks(object runtime.Object) runtime.Object {
	marked := check.Copy(object)
	if accessor, err := meta.Accessor(marked); err == nil && marked != nil {
		accessor.SetLabels(withMark(accessor.GetLabels()))
		accessor.SetAnnotations(withMark(accessor.GetAnnotations()))
	}
	return marked
}

// checkOtherNamespaces adds copies of the World's objects in other namespaces. Then it moves the objects of one kind
// after the other to these namespaces, if they matter, which must have the effect of their removal.
func checkOtherNamespaces(t *check.T) {
	namespaced, altered := inNamespaces(t.World())
	if len(namespaced) == 0 {
		t.Unsupported("the World has no objects in namespaces")
	}
	asItIs := func() []check.Response { return t.SendAll(t.Plugin()) }
	expected := asItIs()
	w := t.World()
	w.Put(append(altered, copiesElsewhere(namespaced)...)...)
	t.CompareResponses("with copies of the World's objects, and altered copies, in other namespaces", expected, t.SendAll(t.PluginIn(w)), asItIs)
	for _, kind := range byKind(namespaced) {
		with := func(instead ...runtime.Object) []check.Response {
			return t.SendAll(t.PluginIn(replaced(t, kind, instead)))
		}
		without := with()
		if sameResponses(expected, without) {
			continue
		}
		t.Reached()
		t.CompareResponses(fmt.Sprintf("with each %s of the World moved to other namespaces, compared with their removal", kindOf(kind[0])), without,
			with(copiesElsewhere(kind)...), func() []check.Response { return with() })
	}
}

// copiesElsewhere returns copies of objects in namespaces that have no meaning, with these namespaces. There are
// several copies of each, so that limits are reached.
func copiesElsewhere(objects []runtime.Object) (copies []runtime.Object) {
	for i := range 8 {
		name := fmt.Sprintf("mmm-contract-%d", i)
		copies = append(copies, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for _, object := range objects {
			copies = append(copies, in(name, check.Copy(object)))
		}
	}
	return copies
}

// inNamespaces returns the objects of a World that are in namespaces, and altered copies of them in other
// namespaces, with these namespaces. The copies have the same names, labels and annotations.
func inNamespaces(w *fakes.World) (namespaced, altered []runtime.Object) {
	for _, object := range w.Objects() {
		if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" {
			namespaced = append(namespaced, object)
		}
	}
	for _, name := range []string{"aaa-contract", "zzz-contract"} { // the first and the last in a list
		altered = append(altered, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for _, object := range namespaced {
			altered = append(altered, alteredIn(name, object))
		}
	}
	return namespaced, altered
}

// alteredIn returns a copy of an object in another namespace, with other values in all fields except the
// metadata.
func alteredIn(namespace string, object runtime.Object) runtime.Object {
	other := check.Copy(object)
	check.OverwriteContent(other)
	return in(namespace, other)
}

// in puts an object that is not stored yet into a namespace.
func in(namespace string, object runtime.Object) runtime.Object {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetNamespace(namespace)
		accessor.SetUID("")
		accessor.SetResourceVersion("")
	}
	return object
}
