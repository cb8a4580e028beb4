package rules

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// versionRules returns the rule for objects that were converted.
func versionRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-VERSION-1", Name: "converted-objects-get-the-same-answer", Level: framework.Must,
		Title:  "An object that the API server has converted to the version of the rule gets the same answer: kind decides, not requestKind.",
		Why:    "With matchPolicy Equivalent, the webhook gets the version of its rule, whatever version the client has sent. A webhook that decodes or decides by requestKind lets clients choose their checks.",
		Fix:    "Use request.kind and request.resource.",
		Source: []string{"https://github.com/elastic/cloud-on-k8s/issues/4270", "https://github.com/elastic/cloud-on-k8s/issues/5423"},
		Check:  checkConverted,
	}}
}

func checkConverted(t *check.T) {
	if t.Config.MatchPolicy != nil && *t.Config.MatchPolicy == "Exact" {
		t.Unsupported("matchPolicy is Exact: the webhook never gets a converted object")
	}
	for _, c := range t.Cases() {
		want, ok := t.Decide(c.Request)
		if !ok {
			continue
		}
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
			t.Errorf("%s, sent in another version: %s", c, text)
		}
	}
}
