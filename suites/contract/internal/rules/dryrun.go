package rules

import (
	"fmt"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// dryRunRules returns the rules for dry runs.
func dryRunRules() []check.Rule {
	return []check.Rule{
		{
			ID: "D1", Name: "dry-run-has-no-side-effects", Level: framework.Must,
			Title: "A dry run has no side effects: the plugin writes nothing, and keeps nothing in memory that changes later responses.",
			Why:   "kubectl diff sends dry runs. A plugin that counts requests in memory also counted the dry runs, and a plugin that creates objects also created them for dry runs.",
			Fix:   "If IsDryRun is true, write nothing (or write with DryRun options) and count nothing.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66391",
				"https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run",
			},
			Check: checkDryRunSideEffects,
		},
		{
			ID: "D2", Name: "dry-run-gets-the-same-answer", Level: framework.Must,
			Title: "A dry run gets the same response as the request itself, with the same changes.",
			Why:   "Users send a dry run to see the response. A plugin that skips a check for dry runs admits a dry run whose real request it refuses.",
			Fix:   "Make the same checks and the same changes for dry runs, and leave out only side effects.",
			Source: []string{
				"https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run",
				"https://github.com/kubernetes/kubernetes/issues/66391",
			},
			Check: checkDryRunResponse,
		},
	}
}

// dryable returns the requests that can be sent as dry runs.
func dryable(t *check.T) []framework.Request {
	var all []framework.Request
	for _, request := range t.Requests() {
		if request.Verb != framework.VerbConnect && !request.DryRun {
			all = append(all, request)
		}
	}
	if len(all) == 0 {
		t.Logf("the Subject has only connects and dry runs")
	}
	return all
}

// round sends requests in order until late returns true. The result of a request that was not sent,
// or for which the plugin panicked, is nil.
func round(t *check.T, h *harness.Harness, requests []framework.Request, late func() bool) []*harness.Result {
	results := make([]*harness.Result, len(requests))
	for i, request := range requests {
		if late() {
			t.LogOnce("stopped before the last request: half of the budget is used")
			break
		}
		if result, ok := t.Do(h, request); ok {
			results[i] = &result
		}
	}
	return results
}

func checkDryRunSideEffects(t *check.T) {
	requests, late := dryable(t), t.HalfBudget()
	dry := t.Plugin()
	before := len(dry.World().Calls())
	real := t.Plugin()
	wrote := false
	for _, request := range requests {
		result, ok := t.Do(dry, request.WithDryRun())
		if writes := lasting(result.Calls); ok && len(writes) > 0 {
			wrote = true
			t.Errorf("%s, as a dry run: the plugin wrote:\n%s", request, writes)
		}
	}
	if writes := writesLater(t, dry, before); !wrote && len(writes) > 0 {
		if alone := t.Plugin(); len(writesLater(t, alone, len(alone.World().Calls()))) > 0 {
			t.Unobserved("the plugin writes in the background, without a request too")
		} else {
			t.Errorf("after the dry runs, the plugin wrote:\n%s", writes)
		}
	}
	expected, got := round(t, real, requests, late), round(t, dry, requests, late)
	for i, request := range requests {
		if expected[i] == nil || got[i] == nil {
			continue
		}
		if len(expected[i].Calls.Writes()) > 0 {
			t.Reached()
		}
		if difference := responseDifference(*expected[i], *got[i]); difference != "" && steady(t, requests, i, *expected[i]) {
			t.Errorf("%s: the response differs after dry runs of all requests (+) and without them (-): %s", request, difference)
		}
	}
	// A plugin that remembers requests responds differently the second time.
	for i, again := range round(t, real, requests, late) {
		if again != nil && expected[i] != nil && responseDifference(*expected[i], *again) != "" {
			t.Reached()
		}
	}
	if !t.HasReached() && !late() {
		t.Unsupported("for these requests the plugin neither writes nor keeps anything")
	}
}

// steady reports whether the i-th request always gets the same response when the requests are sent
// in this order. A plugin with random responses cannot be checked here.
func steady(t *check.T, requests []framework.Request, i int, expected harness.Result) bool {
	varies := t.Ever(func() bool {
		again := round(t, t.Plugin(), requests[:i+1], func() bool { return false })[i]
		return again == nil || responseDifference(expected, *again) != ""
	})
	if varies {
		t.Logf("ignored %s: its response varies", requests[i])
	}
	return !varies
}

// writesLater returns what the plugin wrote to its World after the first calls, and waits a moment for it.
func writesLater(t *check.T, h *harness.Harness, first int) (writes fakes.Calls) {
	check.Poll(t.Context(), moment, func() bool {
		writes = lasting(h.World().Calls()[first:])
		return len(writes) > 0
	})
	return writes
}

func checkDryRunResponse(t *check.T) {
	real, dry, late := t.Plugin(), t.Plugin(), t.HalfBudget()
	for _, request := range dryable(t) {
		if late() {
			t.LogOnce("stopped before the last request: half of the budget is used")
			return
		}
		was, ok := t.Do(real, request)
		if !ok || len(was.Calls.Writes()) > 0 {
			real = t.Plugin() // writes for this request would affect the next request
		}
		is, both := t.Do(dry, request.WithDryRun())
		if !ok || !both {
			dry = t.Plugin()
			continue
		}
		if check.Effect(was) != "" || check.Effect(is) != "" {
			t.Reached()
		}
		if responseDifference(was, is) == "" {
			continue
		}
		// The reason may be an earlier request: try again with new plugins.
		was, ok = t.Do(t.Plugin(), request)
		is, both = t.Do(t.Plugin(), request.WithDryRun())
		if !ok || !both {
			continue
		}
		if difference := responseDifference(was, is); difference != "" && steady(t, []framework.Request{request}, 0, was) {
			t.Errorf("%s: the response differs with dry run (+) and without it (-): %s", request, difference)
		}
	}
}

// lasting returns the writes that were not dry runs.
func lasting(calls fakes.Calls) fakes.Calls {
	var lasting fakes.Calls
	for _, call := range calls.Writes() {
		if !call.DryRun {
			lasting = append(lasting, call)
		}
	}
	return lasting
}

// responseDifference returns how one result differs from another in verdict or object. Empty
// means not at all. It does not compare messages: refusal-messages-are-stable (E3) does.
func responseDifference(was, is harness.Result) string {
	text := func(r harness.Result) string {
		if r.Err == nil {
			return "admitted"
		}
		return refusalText(r.Status)
	}
	switch {
	case !check.SameVerdict(check.Response{Result: was}, check.Response{Result: is}):
		return fmt.Sprintf("\n- %s\n+ %s", text(was), text(is))
	case was.Err == nil && !check.Equal(was.Object, is.Object):
		return "the object differs\n" + check.Diff(was.Object, is.Object)
	default:
		return ""
	}
}
