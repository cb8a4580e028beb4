package rules

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// versionRules returns the rules for objects that are converted.
func versionRules() []check.Rule {
	const why = "With matchPolicy Equivalent, the webhook gets the version of its rule, whatever version the client has sent. A webhook that decodes or decides by requestKind, or that decides otherwise in another version, lets clients choose their checks."
	return []check.Rule{{
		ID: "WH-VERSION-1", Name: "converted-objects-get-the-same-answer", Level: framework.Must,
		Title:  "An object gets the same answer in each version: if the API server has converted it, kind decides and not requestKind, and if the rules match several versions, the verdict is the same.",
		Why:    why,
		Fix:    "Use request.kind and request.resource.",
		Source: []string{"https://github.com/elastic/cloud-on-k8s/issues/4270", "https://github.com/elastic/cloud-on-k8s/issues/5423"},
		Check:  checkConverted,
	}, {
		ID: "WH-CONVERT-1", Name: "conversions-lose-nothing", Level: framework.Must,
		Title:  "The conversion webhook of a sample's CustomResourceDefinition converts a list of two objects to each served version, and back to what they were. It keeps the metadata, and can add labels and annotations.",
		Why:    "An API server converts each stored object for each client of another version, and stores what the client sends back. What a conversion loses is then gone. If it fails for one object, no list of the kind works, and namespaces with such objects cannot be deleted.",
		Fix:    "Keep what the other version has no field for, for example in an annotation, and restore it. Convert each object of the request, in their order.",
		Source: []string{"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion", "https://github.com/kubernetes/kubernetes/issues/71925"},
		Check:  checkConversions,
	}}
}

func checkConversions(t *check.T) {
	for _, c := range t.Cases() {
		others, converter := t.Kinds.OtherVersions(c.Sample.Kind)
		if !isCreate(c) || converter == nil {
			continue
		}
		for _, other := range others {
			checkConversion(t, converter, c.Sample, c.Sample.Kind.Group+"/"+other)
		}
		for _, other := range t.InVersions(c) {
			checkConversion(t, converter, other.Request, c.Sample.Kind.GroupVersion().String())
		}
	}
	if !t.HasReached() && !t.Failed() && !t.Over() {
		t.Unsupported("no sample has a kind whose CustomResourceDefinition has a conversion webhook")
	}
}

// checkConversion has two objects converted to another version and back.
func checkConversion(t *check.T, converter map[string]any, r reach.Request, version string) {
	objects := []map[string]any{review.Stored(r.Object)}
	objects = append(objects, changed(objects[0], func(u *unstructured.Unstructured) { u.SetName(u.GetName() + "-2") }))
	there, ok, err := t.Convert(converter, version, objects)
	back := there
	if err == nil {
		back, ok, err = t.Convert(converter, r.Kind.GroupVersion().String(), there)
	}
	t.Reached()
	switch what := check.Describe(r) + " to " + version + " and back"; {
	case !ok:
		t.Unobserved("%s: %v", what, err)
	case err != nil:
		t.Errorf("%s: %v", what, err)
	default:
		for i, object := range objects {
			if diff := t.DiffObjects(keptOf(object, object), keptOf(back[i], object)); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
	}
}

// keptOf returns a converted object with the metadata that an API server takes of it, without labels and annotations that were added.
func keptOf(object, before map[string]any) map[string]any {
	return changed(object, func(u *unstructured.Unstructured) {
		old := unstructured.Unstructured{Object: before}
		metadata := map[string]any{"name": u.GetName(), "namespace": u.GetNamespace(), "uid": string(u.GetUID())}
		labels, annotations := u.GetLabels(), u.GetAnnotations()
		u.Object["metadata"] = metadata
		maps.DeleteFunc(labels, func(key, _ string) bool { return old.GetLabels()[key] == "" })
		maps.DeleteFunc(annotations, func(key, _ string) bool { return old.GetAnnotations()[key] == "" })
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
	})
}

func checkConverted(t *check.T) {
	checkVersions(t)
	if t.Config.MatchPolicy != nil && *t.Config.MatchPolicy == "Exact" {
		if !t.HasReached() {
			t.Unsupported("matchPolicy is Exact: the webhook never gets a converted object, and no sample is in a second version")
		}
		return
	}
	t.EachDecided(func(c check.Case, want check.Decision) {
		body := t.Review(c.Request)
		request, _ := body["request"].(map[string]any)
		for _, field := range []string{"requestKind", "requestResource"} {
			of, _ := request[field].(map[string]any)
			of["version"] = "v1contract1"
		}
		t.Reached()
		got, ok := t.DecideReview(body)
		if !ok {
			t.Errorf("%s, sent in another version: %s", c, got.Verdict())
		} else if text := t.Difference(want, got); text != "" {
			t.Differs("%s, sent in another version: %s", c, text)
		}
	})
}

// checkVersions sends the samples in their other versions, to the webhook that is called for it.
func checkVersions(t *check.T) {
	t.EachDecided(func(c check.Case, want check.Decision) {
		if !isCreate(c) {
			return
		}
		for _, other := range t.InVersions(c) {
			w := t.CalledFor(other.Request)
			if w == nil {
				continue
			}
			got, ok := t.DecideBy(w, other.Request)
			if !ok {
				continue
			}
			t.Reached()
			what := other.Request.Kind.GroupVersion().String()
			switch {
			case !check.SameVerdict(want, got):
				t.Differs("%s: in version %s it is %s, and in %s %s", c, c.Request.Kind.Version, want.Verdict(), what, got.Verdict())
			case other.SameFields:
				got.Object = changed(got.Object, func(u *unstructured.Unstructured) { u.SetAPIVersion(c.Request.Kind.GroupVersion().String()) })
				if diff := t.DiffObjects(want.Object, got.Object); diff != "" {
					t.Differs("%s: in version %s, the result differs: %s", c, what, diff)
				}
			}
		}
	})
}
