package rules

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// lifecycleRules returns the rules for concurrent and repeated requests, and for the end of
// the plugin.
func lifecycleRules() []check.Rule {
	return []check.Rule{
		{
			ID: "T1", Name: "concurrent-requests-are-independent", Level: framework.Must,
			Title:  "Concurrent requests have the same outcomes as sequential ones.",
			Why:    "An API server calls one plugin from hundreds of goroutines. State of one call in a field of the plugin leaks into other requests, a counter without a lock loses requests, so that more are admitted than its limit, and unlocked writes to a map crash the process.",
			Fix:    "Keep the state of a request in local variables, and protect what requests share with a lock.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/135757", "https://github.com/kubernetes/kubernetes/issues/122940"},
			Check:  checkConcurrency,
		},
		{
			ID: "T2", Name: "list-order-does-not-matter", Level: framework.Should,
			Title:  "The outcome of a request does not depend on the order in which a lister returns objects, nor does the verdict on that of a list by a client.",
			Why:    "Listers return objects in no fixed order: it differs between calls and between API servers. A plugin that takes the first object sets random defaults.",
			Fix:    "Sort what a lister returns before choosing from it.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/110559", "https://github.com/kubernetes/kubernetes/issues/79496"},
			Check:  checkOrderOfLists,
		},
		{
			ID: "L1", Name: "goroutines-end-when-drained", Level: framework.Must,
			Title:  "All goroutines of a plugin end after the drained notification.",
			Why:    "A plugin that cannot be stopped leaks goroutines with every API server that a test starts, and continues to work while its API server shuts down.",
			Fix:    "End each goroutine when the channel of SetDrainedNotification is closed.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/108388", "https://github.com/kubernetes/kubernetes/issues/108766", "https://github.com/kubernetes/kubernetes/issues/110246"},
			Check:  checkDrained,
		},
	}
}

const (
	// callers is how many goroutines send requests. rounds is how often each of them sends all
	// requests.
	callers = 8
	rounds  = 8
	// doubles is how many pairs of requests show whether a plugin loses an update. On a busy machine, that takes
	// several attempts.
	doubles, attempts = 6, 5
	// shuffles is how many orders of lists are tried.
	shuffles = 12
)

// serially sends requests as often as checkConcurrency does, but one at a time. If the responses to
// a request vary even then, the request has an error instead of a response. It sends fewer if they take half of the budget.
func serially(t *check.T, h *harness.Harness) []check.Response {
	var expected []check.Response
	late := t.HalfBudget()
	for n := 0; n < callers*rounds && (n == 0 || !late()); n++ {
		got := make([]check.Response, len(t.Requests()))
		for i, request := range t.Requests() {
			got[i] = check.SendYielding(t.Context(), h, request, runtime.Gosched)
		}
		if expected == nil {
			expected = got
		}
		for i := range got {
			if expected[i].Err == nil && check.Difference(expected[i], got[i]) != "" {
				expected[i].Err = fmt.Errorf("its response varies on the same plugin, even without concurrency")
			}
		}
	}
	return expected
}

func checkConcurrency(t *check.T) {
	expected := serially(t, t.Plugin())
	h := t.Plugin()
	requests, late := t.Requests(), t.HalfBudget()
	var all [][]check.Response
	for round := 0; round < rounds && (round == 0 || !late()); round++ {
		for range callers {
			all = append(all, make([]check.Response, len(requests)))
		}
		// All callers send a request at the same time, and each caller begins with a different
		// request.
		for step := range requests {
			if t.Over() {
				return
			}
			var wait sync.WaitGroup
			start := make(chan struct{})
			for caller := range callers {
				i := (caller + step) % len(requests)
				wait.Go(func() {
					<-start
					all[round*callers+caller][i] = check.SendYielding(t.Context(), h, requests[i], runtime.Gosched)
				})
			}
			close(start)
			wait.Wait()
		}
	}
	reported := map[int]bool{}
	for _, got := range all {
		for i, request := range t.Requests() {
			if expected[i].Err != nil {
				continue
			}
			t.Reached()
			if text := check.Difference(expected[i], got[i]); text != "" && !reported[i] {
				reported[i] = true
				t.Errorf("%s, concurrent with other requests: %s", request, text)
			}
		}
	}
	for i, request := range t.Requests() {
		if expected[i].Err != nil {
			t.Logf("ignored %s: %v", request, expected[i].Err)
			checkLostUpdates(t, request)
		}
	}
}

// checkLostUpdates is about a plugin that counts a request: it sends the request in pairs at the same time. All
// responses together must be those to as many requests one at a time.
func checkLostUpdates(t *check.T, request framework.Request) {
	for first := range 2 { // a limit can be odd or even
		expected, _ := sendCounted(t, request, first, false)
		for range attempts {
			if t.Over() {
				return
			}
			got, inStep := sendCounted(t, request, first, true)
			if expected != nil && got != nil && !slices.Equal(expected, got) {
				if t.Ever(func() bool { again, _ := sendCounted(t, request, first, false); return !slices.Equal(expected, again) }) {
					return // they vary, even one at a time
				}
				t.Errorf("%s: it lost an update of what the plugin counts. The responses to %d requests, two at a time:\n%s\nwant those to as many, one at a time:\n%s",
					request, len(got), strings.Join(got, "\n"), strings.Join(expected, "\n"))
				return
			}
			if inStep {
				break
			}
		}
	}
}

// sendCounted sends a request several times to a new plugin, after the first ones in pairs if wanted, and returns all
// responses, sorted. They are nil if one is an error that says nothing, such as a conflict. InStep is false if two calls
// could not take turns; then the rest is sent one at a time.
func sendCounted(t *check.T, request framework.Request, first int, inPairs bool) (all []string, inStep bool) {
	h, inStep := t.Plugin(), true
	var got []check.Response
	for len(got) < first+2*doubles {
		if !inPairs || !inStep || len(got) < first {
			got = append(got, check.SendYielding(t.Context(), h, request, runtime.Gosched))
			continue
		}
		var two []check.Response
		two, inStep = check.SendPair(t.Context(), h, request)
		got = append(got, two...)
	}
	for _, each := range got {
		status := each.Result.Status
		switch {
		case each.Err != nil, each.Result.Err != nil && !isFinal(status):
			return nil, inStep
		case each.Result.Err != nil:
			all = append(all, fmt.Sprintf("refused with %d %s", status.Code, status.Reason))
		default:
			object, _ := json.Marshal(each.Result.Object) // an object that cannot be encoded has no text
			all = append(all, "admitted "+string(object))
		}
	}
	slices.Sort(all)
	return all, inStep
}

// checkOrderOfLists also adds altered copies of the World's objects: with one object there is no order. The API
// server sorts what it lists itself, although it does not promise that, so for such lists only the verdicts count.
func checkOrderOfLists(t *check.T) {
	worlds := []func() *fakes.World{func() *fakes.World { return t.World() }, func() *fakes.World { return crowded(t) }}
	var expected [2][]check.Response
	for i, world := range worlds {
		expected[i] = t.SendAll(t.PluginIn(world()))
	}
	for seed := range uint64(shuffles) {
		this := seed % 2
		w := worlds[this]()
		w.ShuffleLists(seed)
		got := t.SendAll(t.PluginIn(w))
		for i := range got {
			if got[i].Result.Calls.Has("list", "*") && check.SameVerdict(expected[this][i], got[i]) {
				got[i] = expected[this][i]
			}
		}
		if t.CompareResponses("on a new plugin, with lists in a different order", expected[this], got, nil) > 0 {
			t.Reached()
		}
		if t.Failed() {
			return
		}
	}
}

func checkDrained(t *check.T) {
	var left []string
	// In the first pass, the process may start goroutines that it starts only once.
	for _, limit := range []time.Duration{moment, patience} {
		h := t.Plugin()
		t.SendAll(h)
		h.Initializer().Drain()
		if left = check.GoroutinesLeft(t.Context(), limit, h.Goroutines); len(left) == 0 {
			break
		}
	}
	t.Reached()
	if len(left) > 0 {
		t.Errorf("%s after the drained notification, goroutines of the plugin still run:\n%s\nwant: they end when the channel of SetDrainedNotification is closed", patience, strings.Join(left, "\n"))
	}
}

// ofResources returns the calls that are not for discovery or schemas.
func ofResources(calls fakes.Calls) fakes.Calls {
	return slices.DeleteFunc(slices.Clone(calls), func(call fakes.Call) bool { return call.Path != "" })
}
