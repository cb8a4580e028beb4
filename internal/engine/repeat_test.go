package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
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

func (u *unsteady) Check(context.Context) error             { return nil }
func (u *unsteady) Version(context.Context) (string, error) { return "v1.36.3", nil }
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
		"not available":   {bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"timeout":         {bad: func() (framework.Result, error) { return response(504, "request did not complete"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"leader changed":  {bad: func() (framework.Result, error) { return response(500, "etcdserver: leader changed"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"lost response":   {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1, verdict: framework.Pass, repeated: 1},
		"restart":         {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1, dead: 3, verdict: framework.Pass, repeated: 1},
		"no response, each time": {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1000, verdict: framework.Fail, repeated: 1,
			says: "the API server closes the connection without a response: twice, and it answered other requests meanwhile: step 1 (line 0): get ConfigMap a: no response from the API server"},
		"too slow, each time": {bad: func() (framework.Result, error) {
			return framework.Result{}, fmt.Errorf("%w: %w", framework.ErrNoResponse, context.DeadlineExceeded)
		}, times: 1000, verdict: framework.Inconclusive, repeated: 1, says: "did not respond"},
		"refuses connections, each time": {bad: func() (framework.Result, error) {
			return framework.Result{}, fmt.Errorf("%w: %w", framework.ErrNoResponse, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
		}, times: 1000, verdict: framework.Inconclusive, repeated: 1, says: "did not respond"},
		"for ever": {bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 1000, verdict: framework.Inconclusive, repeated: 1, says: "responded with 503"},
		"denied by a webhook": {bad: func() (framework.Result, error) {
			return response(503, `admission webhook "a" denied the request`), nil
		}, times: 1, verdict: framework.Fail},
		"a pass beside others' connections":    {strangers: 1, verdict: framework.Pass, repeated: 1},
		"a failure beside others' connections": {bad: func() (framework.Result, error) { return response(500, "webhook"), nil }, times: 1, strangers: 1, verdict: framework.Pass, repeated: 1},
		"a failure after others' connections":  {bad: func() (framework.Result, error) { return response(500, "webhook"), nil }, times: 2, strangers: 1, verdict: framework.Fail, repeated: 1},
		"others' connections for ever":         {strangers: 1000, verdict: framework.Inconclusive, repeated: 1, says: lostCause},
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
			s.Spec.When = append(s.Spec.When, scenario.Step{Wait: &object})
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

// dying is a Provider and a Target whose API server ends during the first request, which gets no response.
type dying struct {
	unsteady
	ended chan struct{}
}

func (e *dying) Start(context.Context, target.StartOptions) (target.Target, error) {
	return dyingTarget{unsteadyTarget{targettest.Target{Sandbox: e}, &e.unsteady}, e}, nil
}

func (e *dying) Do(ctx context.Context, _ framework.Request) (framework.Result, error) {
	close(e.ended)
	<-ctx.Done()
	return framework.Result{}, ctx.Err()
}

func (e *dying) Ended() <-chan struct{} { return e.ended }
func (e *dying) Err() error             { return errors.New("etcd ended by itself\nits last line") }

type dyingTarget struct {
	unsteadyTarget
	e *dying
}

func (t dyingTarget) Optional() target.Optional { return target.Optional{Server: t.e} }

// The end of an API server ends the run at once, on the default server and on one with a profile.
func TestEndOfServer(t *testing.T) {
	t.Parallel()
	withProfile := read("a.one")
	withProfile.Spec.Server = &scenario.Server{Flags: map[string]string{"v": "1"}}
	for name, s := range map[string]scenario.Scenario{"default": read("a.one"), "profile": withProfile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := Run(t.Context(), Options{Provider: &dying{ended: make(chan struct{})}, Scenarios: []scenario.Scenario{s}})
			if !errors.Is(err, target.ErrGone) || !strings.HasSuffix(err.Error(), "etcd ended by itself\nits last line") {
				t.Errorf("got error %v; want %v with the reason", err, target.ErrGone)
			}
			if got := out.Outcomes[0]; got.Verdict != framework.Errored || got.Reason != "not reached: the API server is gone: etcd ended by itself" {
				t.Errorf("got %s: %s", got.Verdict, got.Reason)
			}
		})
	}
}

// An API server of which no good answer arrives for longer than a restart takes ends the run, and a shorter time
// does not.
func TestServerIsGone(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]int{"gone": 1 << 20, "restarted": int(20 * time.Second / restartPause)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				lost := func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }
				out, err := Run(t.Context(), Options{Provider: &unsteady{bad: lost, times: 1, dead: dead}, Scenarios: []scenario.Scenario{read("a.one")}})
				gone := name == "gone"
				if errors.Is(err, target.ErrGone) != gone || !gone && (err != nil || out.Outcomes[0].Verdict != framework.Pass) {
					t.Errorf("the run ended with %v, %+v; want %v: %t", err, out.Outcomes, target.ErrGone, gone)
				}
				if took := time.Since(began); gone && took != target.Silence {
					t.Errorf("the run ended after %s, want %s", took, target.Silence)
				}
			})
		})
	}
}

// slow is a Provider whose API server answers no request in the first 12 seconds, and then refuses the first one.
type slow struct{ unsteady }

func (s *slow) Start(context.Context, target.StartOptions) (target.Target, error) {
	return slowTarget{unsteadyTarget{targettest.Target{Sandbox: s}, &s.unsteady}, time.Now()}, nil
}

func (s *slow) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	result, err := s.unsteady.Do(ctx, request)
	if !result.Allowed() {
		timer := time.NewTimer(12 * time.Second)
		defer timer.Stop()
		<-timer.C
	}
	return result, err
}

type slowTarget struct {
	unsteadyTarget
	began time.Time
}

func (t slowTarget) Alive(ctx context.Context) error {
	timer := time.NewTimer(12*time.Second - time.Since(t.began))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A failure while the API server answers nothing says nothing: a webhook call of it can have timed out.
func TestServerPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		s.bad, s.times = func() (framework.Result, error) {
			return response(500, "failed calling webhook: context deadline exceeded"), nil
		}, 1
		out, err := Run(t.Context(), Options{Provider: s, Scenarios: []scenario.Scenario{read("a.one")}})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Outcomes[0]; got.Verdict != framework.Pass || got.Repeated != 1 {
			t.Errorf("got %s (%s) after %d repetitions; want pass after 1", got.Verdict, got.Reason, got.Repeated)
		}
	})
}

// limited is a Provider and a Target whose API server never uses one kind of configuration, or lacks something.
type limited struct {
	unsteady
	never string
	lacks target.Lacks
	other bool // it has other clients

	mu    sync.Mutex
	waits int // for the kind
}

func (s *limited) Start(context.Context, target.StartOptions) (target.Target, error) {
	return limitedTarget{unsteadyTarget{targettest.Target{Sandbox: s}, &s.unsteady}, s}, nil
}

type limitedTarget struct {
	unsteadyTarget
	s *limited
}

func (t limitedTarget) Optional() target.Optional {
	optional := target.Optional{Lacks: func() target.Lacks { return t.s.lacks }}
	if t.s.other {
		optional.Confined = func(string, framework.Request) error { return nil }
	}
	return optional
}

func (t limitedTarget) WaitUntilEffective(_ context.Context, manifests []map[string]any) error {
	if !slices.Contains(admissionKinds(manifests), t.s.never) {
		return nil
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.waits++
	return fmt.Errorf("wait: %w after 45s", framework.ErrTimeout)
}

// installs returns a scenario that is given a configuration of a kind.
func installs(name, kind string) scenario.Scenario {
	s := read(name)
	s.Spec.Given = []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "a"}}}
	return s
}

// stages is a Progress that notes the stages of a run.
type stages struct {
	mu  sync.Mutex
	all []string
}

func (s *stages) Stage(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, text)
}

func (*stages) Done(report.Outcome) {}

// A configuration that is never effective costs the scenarios that install such a one, and no others. The kind is not
// waited for again.
func TestNotEffective(t *testing.T) {
	t.Parallel()
	var all []scenario.Scenario
	for n := range 3 {
		for _, kind := range []string{"MutatingAdmissionPolicy", "ValidatingWebhookConfiguration"} {
			one := installs(fmt.Sprintf("a.%s-%d", strings.ToLower(kind), n), kind)
			one.Spec.Exclusive = true // each has a wave
			all = append(all, one)
		}
	}
	all = append(all, read("a.z"))
	on, shown := &limited{never: "MutatingAdmissionPolicy"}, &stages{}
	r, err := Run(t.Context(), Options{Provider: on, Scenarios: all, Progress: shown})
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, outcome := range r.Outcomes {
		want := framework.Pass
		if strings.Contains(outcome.Name, "mutating") {
			want = framework.Inconclusive
		}
		if outcome.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", outcome.Name, outcome.Verdict, want, outcome.Reason)
		}
		if strings.Contains(outcome.Reason, "any MutatingAdmissionPolicy in time") {
			given++
		}
	}
	if on.waits != 1 || given != 3 {
		t.Errorf("%d waits, %d scenarios given up; want 1, and 3", on.waits, given)
	}
	if slices.ContainsFunc(shown.all, func(stage string) bool { return strings.Contains(stage, " 0 scenarios") }) {
		t.Errorf("the progress says what happens with no scenario:\n%s", strings.Join(shown.all, "\n"))
	}
}

// What an API server lacks costs the scenarios that need it.
func TestLacks(t *testing.T) {
	t.Parallel()
	warned, user := read("a.warned"), read("a.user")
	warned.Spec.When[0].Then = &scenario.Expectation{Warnings: []any{}}
	user.Spec.When[0].As = &framework.User{Name: "jane"}
	admitted := read("a.admitted")
	for feature, unsupported := range map[target.Feature]string{
		target.Warnings: "a.warned", target.Impersonation: "a.user", target.Narrowing: "",
	} {
		t.Run(string(feature), func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Options{Provider: &limited{lacks: target.Lacks{feature: "seen"}}, Scenarios: []scenario.Scenario{warned, user, admitted}})
			if err != nil {
				t.Fatal(err)
			}
			for _, outcome := range r.Outcomes {
				want := framework.Pass
				if outcome.Name == unsupported {
					want = framework.Unsupported
				}
				if outcome.Verdict != want || want == framework.Unsupported && outcome.Reason != "needs "+string(feature)+", which this API server lacks: seen" {
					t.Errorf("%s: %s, want %s: %s", outcome.Name, outcome.Verdict, want, outcome.Reason)
				}
			}
		})
	}
	_, err := Run(t.Context(), Options{Provider: &limited{lacks: target.Lacks{target.Narrowing: "seen"}, other: true}, Scenarios: []scenario.Scenario{admitted}})
	if err == nil || !strings.Contains(err.Error(), "their requests would be touched: seen") {
		t.Errorf("got %v, want an error: the API server has other clients", err)
	}
}
