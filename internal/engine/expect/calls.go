package expect

import (
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
)

func (c comparison) judgeCalls(expect *scenario.Calls, trace framework.Trace) []Mismatch {
	if expect == nil {
		return nil
	}
	var found []Mismatch
	if expect.InOrder != nil || (expect.AnyOrder == nil && expect.Include == nil && expect.Exclude == nil) {
		found = append(found, c.judgeInOrder(expect.InOrder, trace)...)
	}
	if expect.AnyOrder != nil {
		missing, extra := c.judgeSet(expect.AnyOrder, trace, "calls.anyOrder")
		found = append(found, missing...)
		for _, index := range extra {
			found = append(found, extraCall(trace, index))
		}
	}
	missing, _ := c.judgeSet(expect.Include, trace, "calls.include")
	found = append(found, missing...)
	return append(found, judgeExclude(expect.Exclude, trace)...)
}

// judgeInOrder compares the calls in order, up to the first call of another webhook. Differences
// after that one would only be consequences of it.
func (c comparison) judgeInOrder(expect []scenario.Call, trace framework.Trace) []Mismatch {
	var found []Mismatch
	aligned := true
	for i := 0; aligned && i < max(len(expect), len(trace)); i++ {
		switch {
		case i >= len(trace):
			found = append(found, one(match.Index("calls", i), "a call of "+expect[i].Webhook, "no further call")...)
		case i >= len(expect):
			found = append(found, extraCall(trace, i))
		case expect[i].Webhook != trace[i].Webhook:
			aligned = false
			fallthrough
		default:
			found = append(found, c.judgeCall(expect[i], trace, i, match.Index("calls", i))...)
		}
	}
	if names := webhooks(expect); !slices.Equal(names, trace.Webhooks()) {
		found = append(found, one("calls", c.Show(names), c.Show(trace.Webhooks()))...)
	}
	return found
}

// judgeSet assigns a different actual call to each expected one. It returns the mismatches of
// expected calls without an actual one, and the indices of unexpected calls.
func (c comparison) judgeSet(expect []scenario.Call, trace framework.Trace, path string) (missing []Mismatch, extra []int) {
	assigned := match.Assign(len(expect), len(trace), func(e, a int) bool {
		return len(c.judgeCall(expect[e], trace, a, "")) == 0
	})
	for index := range trace {
		if !slices.Contains(assigned, index) {
			extra = append(extra, index)
		}
	}
	for e, index := range assigned {
		if index >= 0 {
			continue
		}
		here := match.Index(path, e)
		nearest, differences := c.nearestCall(expect[e], trace, extra, here)
		if nearest < 0 {
			missing = append(missing, one(here, "a call of "+expect[e].Webhook, "no matching call; all calls: "+c.Show(trace.Webhooks()))...)
			continue
		}
		missing = append(missing, differences...)
		extra = slices.DeleteFunc(extra, func(index int) bool { return index == nearest })
	}
	return missing, extra
}

// nearestCall returns the candidate of the same webhook with the fewest differences, or -1 if
// there is none.
func (c comparison) nearestCall(expect scenario.Call, trace framework.Trace, candidates []int, path string) (int, []Mismatch) {
	nearest, fewest := -1, []Mismatch(nil)
	for _, index := range candidates {
		if trace[index].Webhook != expect.Webhook {
			continue
		}
		differences := c.judgeCall(expect, trace, index, path)
		if nearest < 0 || len(differences) < len(fewest) {
			nearest, fewest = index, differences
		}
	}
	return nearest, fewest
}

func judgeExclude(expect []string, trace framework.Trace) []Mismatch {
	var found []Mismatch
	for index, call := range trace {
		if slices.Contains(expect, call.Webhook) {
			found = append(found, Mismatch{
				Path:     "calls.exclude",
				Expected: "no call of " + call.Webhook,
				Actual:   called(trace, index),
				Call:     &index,
			})
		}
	}
	return found
}

func extraCall(trace framework.Trace, index int) Mismatch {
	return Mismatch{
		Path:     match.Index("calls", index),
		Expected: "no such call",
		Actual:   called(trace, index),
		Call:     &index,
	}
}

func called(trace framework.Trace, index int) string {
	call := trace[index]
	return fmt.Sprintf("a %s call of %s (call %d of %d)", call.Phase, call.Webhook, index+1, len(trace))
}

func webhooks(calls []scenario.Call) []string {
	names := make([]string, 0, len(calls))
	for _, call := range calls {
		names = append(names, call.Webhook)
	}
	return names
}
