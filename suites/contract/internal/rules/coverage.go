package rules

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// randomBytes is the length of the data from which random objects are filled. The others limit their size: some types
// contain themselves.
const (
	randomBytes    = 4096
	randomDepth    = 12
	randomElements = 3
)

func checkResourcesCovered(t *check.T) {
	h := t.Plugin()
	var has []schema.GroupResource
	namespace := ""
	for _, request := range t.Requests() {
		if given, ok := t.AttributesFor(h, request, framework.Mutating); ok {
			has = append(has, given.Resource.GroupResource())
			namespace = cmp.Or(namespace, given.Namespace)
			t.Reached()
		}
	}
	if actsOnAnything(t) {
		t.Unsupported("the plugin also acts on custom resources that it does not know: the Subject cannot have requests for all of them")
	}
	late := t.HalfBudget()
	for _, object := range samples(t) {
		if late() {
			t.LogOnce("stopped before the last type: half of the budget is used")
			return
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		accessor.SetName("sample")
		accessor.SetNamespace(namespace)
		a, err := h.Attributes(framework.Create(object), framework.Mutating)
		if err != nil || slices.Contains(has, a.GetResource().GroupResource()) {
			continue // an unknown resource, or one with a request
		}
		if what := actsOn(t, &h, object); what != "" {
			has = append(has, a.GetResource().GroupResource())
			t.Incomplete("the plugin acts on %s, but the Subject has no request for this resource: add one to Subject.Allow or Subject.Reject (%s)", a.GetResource().GroupResource(), what)
		}
	}
}

// actsOnAnything reports whether the plugin acts on custom resources that it does not know. A
// Subject of such a plugin cannot have requests for all resources.
func actsOnAnything(t *check.T) bool {
	h := t.Plugin()
	for _, request := range t.Requests() {
		variant := unknownResource(t, h, request)
		for _, phase := range check.Phases() {
			given, ok := t.AttributesFor(h, request, phase)
			if !ok || !variant.Apply(&given) || !check.WouldCall(h.Plugin(), phase, given.Operation) {
				continue
			}
			if result, thrown := t.Call(h, given.Record(), phase); thrown == nil && check.Effect(result) != "" {
				return true
			}
		}
	}
	return false
}

// samples returns an empty object of each kind in the schemes of the Subject, in one version. If a
// kind has an internal version, it is that one, because API servers pass it to plugins.
func samples(t *check.T) []runtime.Object {
	schemes := t.World().Schemes()
	if t.Subject.Scheme != nil {
		schemes = []*runtime.Scheme{t.Subject.Scheme}
	}
	var all []runtime.Object
	seen := map[schema.GroupKind]bool{}
	for _, scheme := range schemes {
		known := scheme.AllKnownTypes()
		for _, version := range scheme.PrioritizedVersionsAllGroups() {
			for _, kind := range slices.Sorted(maps.Keys(scheme.KnownTypes(version))) {
				one := version.WithKind(kind)
				if _, list := known[version.WithKind(kind+"List")]; !list || seen[one.GroupKind()] {
					continue
				}
				seen[one.GroupKind()] = true
				typ := known[one]
				if internal, ok := known[schema.GroupVersionKind{Group: one.Group, Version: runtime.APIVersionInternal, Kind: kind}]; ok {
					typ = internal
				}
				if object, ok := reflect.New(typ).Interface().(runtime.Object); ok {
					all = append(all, object)
				}
			}
		}
	}
	return all
}

// actsOn returns what the plugin does for requests with an object, empty and filled with random
// values. Empty means nothing. It replaces a plugin that panics.
func actsOn(t *check.T, h **harness.Harness, empty runtime.Object) string {
	objects := []runtime.Object{empty}
	if random := randomObject(empty); random != nil {
		objects = append(objects, random)
	}
	for _, object := range objects {
		for _, request := range []framework.Request{framework.Create(object), framework.Update(object, check.Copy(object)), framework.Delete(object)} {
			result, ok := t.Do(*h, request)
			if !ok {
				*h = t.Plugin()
				continue
			}
			if effect := check.Effect(result); effect != "" {
				what, _, _ := strings.Cut(effect, "\n")
				return request.String() + ": it " + strings.TrimSuffix(what, ":")
			}
		}
	}
	return ""
}

// randomObject returns an object of the same type, name and namespace with random values, the same each time. It returns
// nil for a type that cannot be filled.
func randomObject(empty runtime.Object) (object runtime.Object) {
	defer func() {
		if recover() != nil {
			object = nil
		}
	}()
	data := make([]byte, randomBytes)
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same objects each time
	for i := range data {
		data[i] = byte(source.Uint32())
	}
	object = check.Copy(empty)
	filler := randfill.NewFromGoFuzz(data[1:]).NilChance(0.3).NumElements(1, randomElements).MaxDepth(randomDepth)
	filler.Funcs(metafuzzer.Funcs(scheme.Codecs)...).Fill(object)
	object.GetObjectKind().SetGroupVersionKind(empty.GetObjectKind().GroupVersionKind())
	is, failed := meta.Accessor(object)
	was, none := meta.Accessor(empty)
	if failed == nil && none == nil {
		is.SetName(was.GetName())
		is.SetNamespace(was.GetNamespace())
	}
	return object
}
