package expect

import (
	"fmt"
	"net/textproto"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
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
			found = append(found, extraCall(trace, index)...)
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
			found = append(found, extraCall(trace, i)...)
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
			found = append(found, ofCall(one("calls.exclude", "no call of "+call.Webhook, called(trace, index)), index)...)
		}
	}
	return found
}

func extraCall(trace framework.Trace, index int) []Mismatch {
	return ofCall(one(match.Index("calls", index), "no such call", called(trace, index)), index)
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

// judgeCall compares an expected call with the call at index. If the webhooks differ, it does not
// compare other fields.
func (c comparison) judgeCall(expect scenario.Call, trace framework.Trace, index int, path string) []Mismatch {
	call := trace[index]
	if expect.Webhook != call.Webhook {
		return ofCall(one(path, "a call of "+expect.Webhook, called(trace, index)), index)
	}
	if expect.Header != nil {
		expect.Header = canonical(expect.Header)
	}
	expect.Webhook = "" // it is the same
	var found []Mismatch
	for _, field := range fieldsOf(expect) {
		if field.name != "phase" && !call.Observed { // the other fields are only known for calls that a Hook received
			found = append(found, one(match.Key(path, field.name), c.Describe(field.value), "unknown: no Hook received the call, it is only inferred")...)
			break
		}
		var actual any = match.Absent{}
		if value, ok := c.seen[index][field.name]; ok {
			actual = value
		}
		found = append(found, c.Match(field.value, actual, match.Key(path, field.name))...)
	}
	return ofCall(found, index)
}

// namedField is a field of an expected call that is set.
type namedField struct {
	name  string
	value any
}

// fieldsOf returns the fields of an expectation that are set, in the order of the type.
func fieldsOf(expect any) []namedField {
	var fields []namedField
	for i, value := 0, reflect.ValueOf(expect); i < value.NumField(); i++ {
		if name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ","); !value.Field(i).IsZero() {
			fields = append(fields, namedField{name, value.Field(i).Interface()})
		}
	}
	return fields
}

// viewOf returns a call as a map with the field names of an expectation. It always has query
// and header, which can be empty. It has review and request only if the review was decoded, and
// code, response and responseBytes only if there was an answer.
func viewOf(call framework.Call) map[string]any {
	seen := map[string]any{
		"webhook": call.Webhook,
		"phase":   string(call.Phase),
		"query":   firsts(call.Query),
		"header":  firsts(call.Header),
		"method":  call.Method,
		"path":    call.Path,
		"proto":   call.Proto,
	}
	if call.Protocols != nil {
		seen["protocols"] = list(call.Protocols)
	}
	for name, text := range map[string]string{
		"serverName": call.ServerName, "clientCertificate": call.ClientCertificate, "connection": call.Connection,
	} {
		if text != "" {
			seen[name] = text
		}
	}
	if call.Review != nil {
		seen["review"] = call.Review
	}
	if request := call.Request(); request != nil {
		seen["request"] = request
	}
	seen["requestBytes"] = int64(call.RequestBytes)
	if call.Code != 0 {
		seen["code"], seen["responseBytes"] = int64(call.Code), int64(call.ResponseBytes)
	}
	if call.Response != nil {
		seen["response"] = call.Response
	}
	if !call.Finished.IsZero() {
		seen["latencyMillis"] = float64(call.Finished.Sub(call.Started).Microseconds()) / 1000
	}
	return redact.Fields(seen)
}

// firsts returns the first value for each name.
func firsts(values map[string][]string) map[string]any {
	first := make(map[string]any, len(values))
	for name, all := range values {
		if len(all) > 0 {
			first[name] = all[0]
		}
	}
	return first
}

// canonical returns an expected header with canonical names, as in net/http. The fields of $exact
// are also names.
func canonical(header map[string]any) map[string]any {
	result := make(map[string]any, len(header))
	for name, value := range header {
		if name == "$exact" {
			if inner, ok := value.(map[string]any); ok {
				value = canonical(inner)
			}
			result[name] = value
			continue
		}
		result[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	return result
}

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
			return ofCall(one(here, expected, "(absent)"), index)
		}
		same := slices.IndexFunc(values, func(earlier any) bool { return match.Equal(earlier, value) })
		if same >= 0 {
			return ofCall(one(here, expected, fmt.Sprintf("%s, the same as in calls[%d]", c.Show(value), same)), index)
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
	if unknown := withoutTimes("serial", expected, trace, nil, 2); unknown != nil {
		return unknown
	}
	last := 0 // the call so far that was answered last
	for index := 1; index < len(trace); index++ {
		if early := trace[last].Finished.Sub(trace[index].Started); early > 0 {
			return ofCall(one("serial", expected, fmt.Sprintf("%s, %s before %s", called(trace, index), early, answered(trace, last))), index)
		}
		if !trace[index].Finished.Before(trace[last].Finished) {
			last = index
		}
	}
	return nil
}

func (c comparison) judgeOverlapping(names []string, trace framework.Trace) []Mismatch {
	expected := "the calls of " + c.Show(names) + " to overlap in time"
	var chosen []int
	for index, call := range trace {
		if slices.Contains(names, call.Webhook) {
			chosen = append(chosen, index)
		}
	}
	for _, name := range names {
		if !slices.Contains(trace.Webhooks(), name) {
			return one("overlapping", expected, "no call of "+name)
		}
	}
	if unknown := withoutTimes("overlapping", expected, trace, chosen, 2); unknown != nil {
		return unknown
	}
	latest := slices.MaxFunc(chosen, func(a, b int) int { return trace[a].Started.Compare(trace[b].Started) })
	soonest := slices.MinFunc(chosen, func(a, b int) int { return trace[a].Finished.Compare(trace[b].Finished) })
	gap := trace[latest].Started.Sub(trace[soonest].Finished)
	if gap < 0 {
		return nil
	}
	return ofCall(one("overlapping", expected, fmt.Sprintf("%s, %s after %s", called(trace, latest), gap, answered(trace, soonest))), latest)
}

func judgeAnsweredLast(got framework.Result) []Mismatch {
	const expected = "every call to be answered before the API server responds to the client"
	if got.Finished.IsZero() {
		return one("answeredLast", expected, "unknown: the time of the response to the client was not recorded")
	}
	if unknown := withoutTimes("answeredLast", expected, got.Trace, nil, 1); unknown != nil {
		return unknown
	}
	var found []Mismatch
	for index, call := range got.Trace {
		if late := call.Finished.Sub(got.Finished); late > 0 && !call.GivenUp {
			found = append(found, ofCall(one("answeredLast", expected, fmt.Sprintf("%s, %s after the response to the client", answered(got.Trace, index), late)), index)...)
		}
	}
	return found
}

// withoutTimes returns a Mismatch if there are too few calls, or for the first call without known times, and otherwise
// nil. The calls are those at some indices, or all.
func withoutTimes(path, expected string, trace framework.Trace, calls []int, least int) []Mismatch {
	chosen := trace
	if calls != nil {
		chosen = nil
		for _, index := range calls {
			chosen = append(chosen, trace[index])
		}
	}
	if len(chosen) < least {
		return one(path, expected, tooFew(chosen))
	}
	for index, call := range chosen {
		why := "not yet answered"
		if !call.Observed {
			why = "only inferred, no Hook received it"
		} else if !call.Started.IsZero() && !call.Finished.IsZero() {
			continue
		}
		if calls != nil {
			index = calls[index]
		}
		return ofCall(one(path, expected, fmt.Sprintf("unknown: call %d (%s) is %s", index+1, call.Webhook, why)), index)
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
