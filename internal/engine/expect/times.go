package expect

import (
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
)

// judgeDistinct checks that the value at each path differs between all calls.
func (c comparison) judgeDistinct(paths []string, trace framework.Trace) []Mismatch {
	var found []Mismatch
	for _, path := range paths {
		found = append(found, c.judgeDistinctAt(path, trace)...)
	}
	return found
}

func (c comparison) judgeDistinctAt(path string, trace framework.Trace) []Mismatch {
	expected := "a different value of " + path + " in each call"
	if len(trace) < 2 {
		return one("distinct", expected, tooFew(trace))
	}
	var values []any
	for index := range trace {
		value, err := match.Lookup(c.seen[index], path)
		if err != nil {
			return one("distinct", "the path of a field of a call", err.Error())
		}
		here := fmt.Sprintf("calls[%d].%s", index, path)
		if value == (any)(match.Absent{}) {
			return []Mismatch{{Path: here, Expected: expected, Actual: "(absent)", Call: &index}}
		}
		same := slices.IndexFunc(values, func(earlier any) bool { return match.Equal(earlier, value) })
		if same >= 0 {
			actual := fmt.Sprintf("%s, the same as in calls[%d]", c.Show(value), same)
			return []Mismatch{{Path: here, Expected: expected, Actual: actual, Call: &index}}
		}
		values = append(values, value)
	}
	return nil
}

func (c comparison) judgeTimes(expect *scenario.Expectation, got framework.Result) []Mismatch {
	var found []Mismatch
	if expect.Serial {
		found = append(found, judgeSerial(got.Trace)...)
	}
	if len(expect.Overlapping) > 0 {
		found = append(found, c.judgeOverlapping(expect.Overlapping, got.Trace)...)
	}
	if expect.AnsweredLast {
		found = append(found, judgeAnsweredLast(got)...)
	}
	return found
}

func judgeSerial(trace framework.Trace) []Mismatch {
	const expected = "each call to start after the previous call was answered"
	if len(trace) < 2 {
		return one("serial", expected, tooFew(trace))
	}
	if unknown := withoutTimes("serial", expected, trace, indices(trace)); unknown != nil {
		return unknown
	}
	last := 0 // the call so far that was answered last
	for index := 1; index < len(trace); index++ {
		if early := trace[last].Finished.Sub(trace[index].Started); early > 0 {
			return []Mismatch{{
				Path:     "serial",
				Expected: expected,
				Actual:   fmt.Sprintf("%s, %s before %s", called(trace, index), early, answered(trace, last)),
				Call:     &index,
			}}
		}
		if !trace[index].Finished.Before(trace[last].Finished) {
			last = index
		}
	}
	return nil
}

func (c comparison) judgeOverlapping(names []string, trace framework.Trace) []Mismatch {
	expected := "the calls of " + c.Show(names) + " to overlap in time"
	for _, name := range names {
		if !slices.Contains(trace.Webhooks(), name) {
			return one("overlapping", expected, "no call of "+name)
		}
	}
	var chosen []int
	for index, call := range trace {
		if slices.Contains(names, call.Webhook) {
			chosen = append(chosen, index)
		}
	}
	if len(chosen) < 2 {
		return one("overlapping", expected, "only one such call")
	}
	if unknown := withoutTimes("overlapping", expected, trace, chosen); unknown != nil {
		return unknown
	}
	latest, soonest := chosen[0], chosen[0] // the call that began last, and the one that was answered first
	for _, index := range chosen {
		if trace[index].Started.After(trace[latest].Started) {
			latest = index
		}
		if trace[index].Finished.Before(trace[soonest].Finished) {
			soonest = index
		}
	}
	gap := trace[latest].Started.Sub(trace[soonest].Finished)
	if gap < 0 {
		return nil
	}
	return []Mismatch{{
		Path:     "overlapping",
		Expected: expected,
		Actual:   fmt.Sprintf("%s, %s after %s", called(trace, latest), gap, answered(trace, soonest)),
		Call:     &latest,
	}}
}

func judgeAnsweredLast(got framework.Result) []Mismatch {
	const expected = "every call to be answered before the API server responds to the client"
	if len(got.Trace) == 0 {
		return one("answeredLast", expected, "no calls")
	}
	if got.Finished.IsZero() {
		return one("answeredLast", expected, "unknown: the time of the response to the client was not recorded")
	}
	if unknown := withoutTimes("answeredLast", expected, got.Trace, indices(got.Trace)); unknown != nil {
		return unknown
	}
	var found []Mismatch
	for index, call := range got.Trace {
		if late := call.Finished.Sub(got.Finished); late > 0 && !call.GivenUp {
			found = append(found, Mismatch{
				Path:     "answeredLast",
				Expected: expected,
				Actual:   fmt.Sprintf("%s, %s after the response to the client", answered(got.Trace, index), late),
				Call:     &index,
			})
		}
	}
	return found
}

// withoutTimes returns a Mismatch for the first call without known times, or nil.
func withoutTimes(path, expected string, trace framework.Trace, calls []int) []Mismatch {
	for _, index := range calls {
		call := trace[index]
		var why string
		switch {
		case !call.Observed:
			why = "only inferred, no Hook received it"
		case call.Started.IsZero() || call.Finished.IsZero():
			why = "not yet answered"
		default:
			continue
		}
		actual := fmt.Sprintf("unknown: call %d (%s) is %s", index+1, call.Webhook, why)
		return []Mismatch{{Path: path, Expected: expected, Actual: actual, Call: &index}}
	}
	return nil
}

func answered(trace framework.Trace, index int) string {
	return fmt.Sprintf("call %d (%s) was answered", index+1, trace[index].Webhook)
}

func tooFew(trace framework.Trace) string {
	if len(trace) == 1 {
		return "only one call; want two or more to compare"
	}
	return "no calls"
}

func indices(trace framework.Trace) []int {
	all := make([]int, len(trace))
	for i := range all {
		all[i] = i
	}
	return all
}
