package rules

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"

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
	t.EachDecided(func(c check.Case, want check.Decision) {
		r := c.Request
		r.DryRun = true
		got, ok := t.Decide(r)
		if !ok {
			return
		}
		t.Reached()
		if text := t.Difference(want, got); text != "" {
			t.Differs("%s as a dry run: %s", c, text)
		} else if diff := cmp.Diff(want.Response.Warnings, got.Response.Warnings); diff != "" {
			t.Differs("%s as a dry run: the warnings differ (- want, + got):\n%s", c, diff)
		}
	})
}

const (
	// settle is how long side effects are awaited after the last call: a webhook can leave them to another goroutine.
	settle = 500 * time.Millisecond
	// period is longer than what runs without calls waits between its writes, such as leader election: 2 s.
	period = 2500 * time.Millisecond
)

func checkSideEffects(t *check.T) {
	if t.Effects == nil && t.URL != "" {
		t.Unsupported("what a webhook at a URL does to other systems cannot be seen from here; a test in Go can give Subject.Effects")
	}
	if t.Effects == nil {
		t.Unobserved("it is not known what the webhook does to other systems: give Subject.Effects")
		return
	}
	pause(t, settle/10) // the calls of the rule before can have effects
	call, effect := sideEffect(t)
	if effect == "" {
		return
	}
	pause(t, settle) // the call can have more of them
	if other := effectWithin(t, t.Effects(), period); other != "" {
		t.Unobserved("%s: Subject.Effects changes, but without a call too, so it is not known whose effect it is: %s", call, other)
		return
	}
	if again, same := sideEffect(t); same == "" {
		t.Unobserved("%s: Subject.Effects changed, but not when the calls were repeated: %s", call, effect)
	} else {
		t.Errorf("%s: the webhook has side effects: %s", again, same)
	}
}

// sideEffect sends the calls that must have no side effects. It returns the effect, and the call after which it was found. "" means
// that there is none.
func sideEffect(t *check.T) (call, effect string) {
	none := t.Config.SideEffects != nil && *t.Config.SideEffects == admissionregistrationv1.SideEffectClassNone
	before := t.Effects()
	for _, c := range t.Cases() {
		for _, dry := range []bool{true, false} {
			r := c.Request
			r.DryRun = dry
			if !dry && !none {
				continue
			}
			if _, ok := t.Decide(r); !ok {
				continue
			}
			t.Reached()
			call = c.String() + " as a dry run"
			if !dry {
				call = c.String() + " with sideEffects: None"
			}
			if after := t.Effects(); !reflect.DeepEqual(before, after) {
				return call, describeEffect(before, after)
			}
		}
	}
	return call + ", or a call before it", effectWithin(t, before, settle)
}

func pause(t *check.T, limit time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	<-ctx.Done()
}

// effectWithin waits until Effects is not what it was before, and returns the effect, or "" after the limit.
func effectWithin(t *check.T, before any, limit time.Duration) (effect string) {
	_ = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		if after := t.Effects(); !reflect.DeepEqual(before, after) {
			effect = describeEffect(before, after)
		}
		return effect != "", nil
	})
	return effect
}

func describeEffect(before, after any) string {
	return fmt.Sprintf("before %v, after %v", before, after)
}
