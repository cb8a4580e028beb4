package rules

import (
	"fmt"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// dryRunProperties returns the properties of this file.
func dryRunRules() []check.Rule {
	return []check.Rule{
		{
			ID: "D1", Name: "dry-run-has-no-side-effects", Level: framework.Must,
			Title: "A dry run leaves nothing behind: no write, and nothing in memory that changes later answers.",
			Why:   "kubectl diff is a dry run. A plugin that counts in memory counted it too, and one that provisions provisioned.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66391",
				"https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run",
			},
			Check: checkNothingLeft,
		},
		{
			ID: "D2", Name: "dry-run-gets-the-same-answer", Level: framework.Must,
			Title: "A dry run is answered as the request itself would be, with the same changes.",
			Why:   "What a dry run is for is to learn the answer: one that skips the check admits what is then refused.",
			Source: []string{
				"https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run",
				"https://github.com/kubernetes/kubernetes/issues/66391",
			},
			Check: checkSameAnswer,
		},
	}
}

// dryable returns the requests that there are dry runs of.
func dryable(t *check.T) []framework.Request {
	var all []framework.Request
	for _, request := range t.Requests() {
		if request.Verb != framework.VerbConnect && !request.DryRun {
			all = append(all, request)
		}
	}
	if len(all) == 0 {
		t.Logf("only connects, and requests that are dry runs, are there")
	}
	return all
}

// round carries out requests one after another, until it is late. Those that came to
// nothing are nil.
func round(t *check.T, h *harness.Harness, requests []framework.Request, late func() bool) []*harness.Result {
	results := make([]*harness.Result, len(requests))
	for i, request := range requests {
		if late() {
			t.LogOnce("not all requests were looked at: half the budget was used up")
			break
		}
		if result, ok := t.Do(h, request); ok {
			results[i] = &result
		}
	}
	return results
}

func checkNothingLeft(t *check.T) {
	requests, late := dryable(t), t.HalfBudget()
	dry, real := t.Plugin(), t.Plugin()
	for _, request := range requests {
		result, ok := t.Do(dry, request.WithDryRun())
		if writes := lasting(result.Calls); ok && len(writes) > 0 {
			t.Errorf("%s, as a dry run: the plugin wrote:\n%s", request, writes)
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
		if difference := answers(*expected[i], *got[i]); difference != "" && steady(t, requests, i, *expected[i]) {
			t.Errorf("%s: after dry runs of all requests it is answered otherwise than without them (+ after, - without): %s", request, difference)
		}
	}
	// One that remembers requests answers them otherwise the second time.
	for i, again := range round(t, real, requests, late) {
		if again != nil && expected[i] != nil && answers(*expected[i], *again) != "" {
			t.Reached()
		}
	}
	if !t.HasReached() && !late() {
		t.Unsupported("with none of these requests does it write or keep anything")
	}
}

// steady reports whether requests in this order have one answer to the i-th: of
// plugins that answer at random nothing can be said here.
func steady(t *check.T, requests []framework.Request, i int, expected harness.Result) bool {
	again := round(t, t.Plugin(), requests[:i+1], func() bool { return false })[i]
	if again == nil || answers(expected, *again) != "" {
		t.Logf("%s is answered otherwise each time", requests[i])
		return false
	}
	return true
}

func checkSameAnswer(t *check.T) {
	real, dry, late := t.Plugin(), t.Plugin(), t.HalfBudget()
	for _, request := range dryable(t) {
		if late() {
			t.LogOnce("not all requests were looked at: half the budget was used up")
			return
		}
		was, ok := t.Do(real, request)
		if !ok || len(was.Calls.Writes()) > 0 {
			real = t.Plugin() // what it wrote is there for the next request
		}
		is, both := t.Do(dry, request.WithDryRun())
		if !ok || !both {
			dry = t.Plugin()
			continue
		}
		if check.Effect(was) != "" || check.Effect(is) != "" {
			t.Reached()
		}
		if answers(was, is) == "" {
			continue
		}
		// It may be for what the plugin has seen before: once more, with two new ones.
		was, ok = t.Do(t.Plugin(), request)
		is, both = t.Do(t.Plugin(), request.WithDryRun())
		if !ok || !both {
			continue
		}
		if difference := answers(was, is); difference != "" && steady(t, []framework.Request{request}, 0, was) {
			t.Errorf("%s, as a dry run, is answered otherwise than without (+ dry run, - without): %s", request, difference)
		}
	}
}

// lasting are the writes that were not dry runs themselves.
func lasting(calls fakes.Calls) fakes.Calls {
	var lasting fakes.Calls
	for _, call := range calls.Writes() {
		if !call.DryRun {
			lasting = append(lasting, call)
		}
	}
	return lasting
}

// answers tells in what one answer differs from another: verdict or object. Empty is
// in nothing.
func answers(was, is harness.Result) string {
	text := func(r harness.Result) string {
		if r.Err == nil {
			return "admitted"
		}
		return fmt.Sprintf("refused with %d %s: %s", r.Status.Code, r.Status.Reason, r.Status.Message)
	}
	switch before, after := text(was), text(is); {
	case before != after:
		return fmt.Sprintf("\n- %s\n+ %s", before, after)
	case was.Err == nil && !check.Equal(was.Object, is.Object):
		return "the object differs\n" + check.Diff(was.Object, is.Object)
	default:
		return ""
	}
}
