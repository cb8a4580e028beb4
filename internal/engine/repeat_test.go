package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// unsteady is a Provider and a Sandbox whose first responses are not about
// admission.
type unsteady struct {
	targettest.Sandbox
	// bad answers the first requests of each scenario. After them, requests succeed.
	bad func() (framework.Result, error)
	// times is how many requests fail, dead how many questions of Alive.
	times, dead int
	// strangers is how many requests other clients disturb by their connections.
	strangers int

	mu       sync.Mutex
	requests int
}

func (u *unsteady) Check(context.Context, []scenario.Scenario) error { return nil }
func (u *unsteady) Version(context.Context) (string, error)          { return "v1.36.3", nil }
func (u *unsteady) Start(context.Context, target.StartOptions) (target.Target, error) {
	return unsteadyTarget{targettest.Target{Sandbox: u}, u}, nil
}

func (u *unsteady) Do(context.Context, framework.Request) (framework.Result, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests++
	if u.requests <= u.times {
		return u.bad()
	}
	return response(200, ""), nil
}

type unsteadyTarget struct {
	targettest.Target
	u *unsteady
}

func (t unsteadyTarget) Optional() target.Optional {
	return target.Optional{Strangers: func() hook.Strangers {
		t.u.mu.Lock()
		defer t.u.mu.Unlock()
		lost := min(t.u.requests, t.u.strangers)
		return hook.Strangers{Requests: 1, Lost: lost}
	}}
}

func (t unsteadyTarget) Alive(context.Context) error {
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	if t.u.dead--; t.u.dead >= 0 {
		return framework.ErrNoResponse
	}
	return nil
}

func response(code int32, message string) framework.Result {
	var result framework.Result
	result.Status.Code, result.Status.Message = code, message
	return result
}

func read(name string) scenario.Scenario {
	s := scenario.Scenario{Metadata: scenario.Metadata{Name: name}}
	s.Spec.Level = framework.Must
	s.Spec.When = []scenario.Step{{
		Get:  &scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"},
		Then: &scenario.Expectation{Code: scenario.OneOrMore[int]{200}},
	}}
	return s
}

// What the infrastructure did is no verdict about admission: the scenario is repeated, and
// the report says so.
func TestInfrastructureIsNoVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad         func() (framework.Result, error)
		times, dead int
		strangers   int
		verdict     framework.Verdict
		repeated    int
		says        string
	}{
		"overloaded once": {bad: func() (framework.Result, error) { return response(429, "too many requests"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"not available":   {bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 2, verdict: framework.Pass, repeated: 2},
		"timeout":         {bad: func() (framework.Result, error) { return response(504, "request did not complete"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"leader changed":  {bad: func() (framework.Result, error) { return response(500, "etcdserver: leader changed"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"lost response":   {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1, verdict: framework.Pass, repeated: 1},
		"restart":         {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1, dead: 3, verdict: framework.Pass, repeated: 1},
		"no response, each time": {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1000, verdict: framework.Fail, repeated: repeatLimit,
			says: "the API server closes the connection without a response: 4 times, and it answered other requests meanwhile: step 1 (line 0): get ConfigMap a: no response from the API server"},
		"too slow, each time": {bad: func() (framework.Result, error) {
			return framework.Result{}, fmt.Errorf("%w: %w", framework.ErrNoResponse, context.DeadlineExceeded)
		}, times: 1000, verdict: framework.Inconclusive, repeated: repeatLimit, says: "did not respond"},
		"refuses connections, each time": {bad: func() (framework.Result, error) {
			return framework.Result{}, fmt.Errorf("%w: %w", framework.ErrNoResponse, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
		}, times: 1000, verdict: framework.Inconclusive, repeated: repeatLimit, says: "did not respond"},
		"for ever": {bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 1000, verdict: framework.Inconclusive, repeated: repeatLimit, says: "responded with 503"},
		"denied by a webhook": {bad: func() (framework.Result, error) {
			return response(503, `admission webhook "a" denied the request`), nil
		}, times: 1, verdict: framework.Fail},
		"a pass beside others' connections":    {strangers: 1, verdict: framework.Pass, repeated: 1},
		"a failure beside others' connections": {bad: func() (framework.Result, error) { return response(500, "webhook"), nil }, times: 1, strangers: 1, verdict: framework.Pass, repeated: 1},
		"a failure after others' connections":  {bad: func() (framework.Result, error) { return response(500, "webhook"), nil }, times: 2, strangers: 1, verdict: framework.Fail, repeated: 1},
		"others' connections for ever":         {strangers: 1000, verdict: framework.Inconclusive, repeated: repeatLimit, says: lostCause},
		"other failure":                        {bad: func() (framework.Result, error) { return response(500, "no such thing"), nil }, times: 1, verdict: framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unsteady{bad: test.bad, times: test.times, dead: test.dead, strangers: test.strangers}
			out, err := Run(t.Context(), Options{Provider: u, Scenarios: []scenario.Scenario{read("a.one")}})
			if err != nil {
				t.Fatal(err)
			}
			if out.ForeignRequests != 1 {
				t.Errorf("got %d foreign requests, want 1", out.ForeignRequests)
			}
			got := out.Outcomes[0]
			if got.Verdict != test.verdict || got.Repeated != test.repeated || !strings.Contains(got.Reason, test.says) {
				t.Errorf("got %s after %d repetitions (%s), want %s after %d, with %q", got.Verdict, got.Repeated, got.Reason, test.verdict, test.repeated, test.says)
			}
		})
	}
}

// halfGone is an unsteady API server of several, one of which ends: the request of one scenario gets no response, and what
// another one waits for does not happen meanwhile.
type halfGone struct {
	unsteady
	asked map[string]int
	// missed is closed when the engine has noticed the request without response: then it asks whether the API server is alive.
	missed chan struct{}
	once   sync.Once
	// waits is closed when the other scenario waits.
	waits chan struct{}
}

type halfGoneTarget struct {
	unsteadyTarget
	g *halfGone
}

func (g *halfGone) Start(context.Context, target.StartOptions) (target.Target, error) {
	return halfGoneTarget{unsteadyTarget{targettest.Target{Sandbox: g}, &g.unsteady}, g}, nil
}

func (t halfGoneTarget) Alive(context.Context) error {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if t.g.asked["gone"] > 0 {
		t.g.once.Do(func() { close(t.g.missed) })
	}
	return nil
}

func (g *halfGone) Do(_ context.Context, request framework.Request) (framework.Result, error) {
	g.mu.Lock()
	g.asked[request.Name]++
	first := g.asked[request.Name] == 1
	g.mu.Unlock()
	switch {
	case first && request.Name == "lost":
		<-g.waits
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked["gone"]++
		return framework.Result{}, framework.ErrNoResponse
	case first:
		close(g.waits)
		<-g.missed
		return framework.Result{}, framework.ErrTimeout
	}
	return response(200, ""), nil
}

// A scenario for which something did not happen in time is repeated if the API server did not respond to another one meanwhile.
func TestInconclusiveWhileAnAPIServerEnded(t *testing.T) {
	t.Parallel()
	g := &halfGone{asked: map[string]int{}, missed: make(chan struct{}), waits: make(chan struct{})}
	var all []scenario.Scenario
	for _, name := range []string{"late", "lost"} {
		s := read("a." + name)
		s.Spec.When[0].Get.Name = name
		all = append(all, s)
	}
	out, err := Run(t.Context(), Options{Provider: g, Scenarios: all, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range out.Outcomes {
		if outcome.Verdict != framework.Pass || outcome.Repeated != 1 {
			t.Errorf("%s: got %s after %d repetitions (%s), want a pass after one", outcome.Name, outcome.Verdict, outcome.Repeated, outcome.Reason)
		}
	}
}

// tooLate is an unsteady API server whose first answer to a step that waits is too late.
type tooLate struct {
	unsteady
	once sync.Once
}

func (s *tooLate) Start(context.Context, target.StartOptions) (target.Target, error) {
	return unsteadyTarget{targettest.Target{Sandbox: s}, &s.unsteady}, nil
}

func (s *tooLate) Send(context.Context, framework.Request) (result framework.Result, err error) {
	s.once.Do(func() { err = fmt.Errorf("%w: %w", framework.ErrNoResponse, context.DeadlineExceeded) })
	return response(200, ""), err
}

// So is a scenario that waits, if a request of it got no response in time: that is not what it waited for.
func TestNoResponseWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]scenario.Wait{
		"until it matches": {},
		"until it is gone": {Gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := read("a.one")
			object.ObjectReference = *s.Spec.When[0].Get
			s.Spec.When = []scenario.Step{{Wait: &object}}
			out, err := Run(t.Context(), Options{Provider: &tooLate{}, Scenarios: []scenario.Scenario{s}, Patience: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Outcomes[0]; got.Repeated != 1 || strings.Contains(got.Reason, "no response") {
				t.Errorf("got %s after %d repetitions (%s), want one", got.Verdict, got.Repeated, got.Reason)
			}
		})
	}
}

// Of a PolicyTest, only the cases whose outcomes say nothing are repeated.
func TestCasesAreRepeated(t *testing.T) {
	t.Parallel()
	table := scenario.Scenario{Metadata: scenario.Metadata{Name: "a"}}
	for _, name := range []string{"a.one", "a.three", "a.two"} {
		table.Cases = append(table.Cases, scenario.Case{Name: name, When: read(name).Spec.When})
	}
	u := &unsteady{bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 2}
	out, err := Run(t.Context(), Options{Provider: u, Scenarios: []scenario.Scenario{table}, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a.one": 1, "a.three": 1, "a.two": 0}
	for _, outcome := range out.Outcomes {
		if repeated, ok := want[outcome.Name]; !ok || outcome.Verdict != framework.Pass || outcome.Repeated != repeated {
			t.Errorf("%s: got %s after %d repetitions, want a pass after %d", outcome.Name, outcome.Verdict, outcome.Repeated, repeated)
		}
	}
	if len(out.Outcomes) != len(want) || u.requests != 5 {
		t.Errorf("got %d outcomes after %d requests, want %d after 5", len(out.Outcomes), u.requests, len(want))
	}
}
