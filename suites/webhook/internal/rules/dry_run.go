package rules

import (
	"reflect"

	"github.com/google/go-cmp/cmp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// dryRunRules returns the rules for dry runs and side effects.
func dryRunRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-DRY-1", Name: "dry-run-gets-the-same-answer", Level: framework.Should,
			Title:  "A dry run gets the same verdict, object and warnings as the request itself.",
			Why:    "kubectl diff, GitOps tools and server-side previews show something else than what happens.",
			Fix:    "Decide without request.dryRun, and use it only to leave out side effects.",
			Source: []string{goodPractices},
			Check:  checkDryRun,
		},
		{
			ID: "WH-DRY-2", Name: "dry-run-has-no-side-effects", Level: framework.Must,
			Title:  "A dry run has no side effects. With sideEffects: None, no request has.",
			Why:    "A preview reserves, writes or sends something that no request has asked for.",
			Fix:    "Return before the side effect if request.dryRun is true, and declare sideEffects: NoneOnDryRun.",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/66936", goodPractices},
			Check:  checkSideEffects,
		},
	}
}

func checkDryRun(t *check.T) {
	for _, c := range t.Cases() {
		want, ok := t.Decide(c.Request)
		if !ok {
			continue
		}
		r := c.Request
		r.DryRun = true
		got, ok := t.Decide(r)
		if !ok {
			continue
		}
		t.Reached()
		if text := t.Difference(want, got); text != "" {
			t.Errorf("%s as a dry run: %s", c, text)
		} else if diff := cmp.Diff(want.Response.Warnings, got.Response.Warnings); diff != "" {
			t.Errorf("%s as a dry run: the warnings differ (- want, + got):\n%s", c, diff)
		}
	}
}

func checkSideEffects(t *check.T) {
	if t.Effects == nil && t.URL != "" {
		t.Unsupported("what a webhook at a URL does to other systems cannot be seen from here; a test in Go can give Subject.Effects")
	}
	if t.Effects == nil {
		t.Unobserved("it is not known what the webhook does to other systems: give Subject.Effects")
		return
	}
	none := t.Config.SideEffects != nil && *t.Config.SideEffects == admissionregistrationv1.SideEffectClassNone
	for _, c := range t.Cases() {
		for _, dry := range []bool{true, false} {
			if !dry && !none {
				continue
			}
			r := c.Request
			r.DryRun = dry
			before := t.Effects()
			if _, ok := t.Decide(r); !ok {
				continue
			}
			t.Reached()
			if after := t.Effects(); !reflect.DeepEqual(before, after) {
				what := "as a dry run"
				if !dry {
					what = "with sideEffects: None"
				}
				t.Errorf("%s %s: the webhook has side effects: before %v, after %v", c, what, before, after)
			}
		}
	}
}
