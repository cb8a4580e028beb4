package rules

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// versionRules returns the rule for objects that were converted.
func versionRules() []check.Rule {
	const why = "With matchPolicy Equivalent, the webhook gets the version of its rule, whatever version the client has sent. A webhook that decodes or decides by requestKind, or that decides otherwise in another version, lets clients choose their checks."
	return []check.Rule{{
		ID: "WH-VERSION-1", Name: "converted-objects-get-the-same-answer", Level: framework.Must,
		Title:  "An object gets the same answer in each version: if the API server has converted it, kind decides and not requestKind, and if the rules match several versions, the verdict is the same.",
		Why:    why,
		Fix:    "Use request.kind and request.resource.",
		Source: []string{"https://github.com/elastic/cloud-on-k8s/issues/4270", "https://github.com/elastic/cloud-on-k8s/issues/5423"},
		Check:  checkConverted,
	}}
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
