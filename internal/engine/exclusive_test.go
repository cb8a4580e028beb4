package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// crowded is a Provider of a target on which there can be other runs.
type crowded struct {
	*unsteady
	runs func() (alive, installed []string, err error)
}

func (c crowded) Start(context.Context, target.StartOptions) (target.Target, error) {
	return crowdedTarget{unsteadyTarget{targettest.Target{Sandbox: c.unsteady}, c.unsteady}, c.runs}, nil
}

type crowdedTarget struct {
	unsteadyTarget
	runs func() (alive, installed []string, err error)
}

func (c crowdedTarget) Optional() target.Optional {
	return target.Optional{OtherRuns: func(context.Context) (alive, installed []string, err error) { return c.runs() }}
}

// A failure of an exclusive scenario is no verdict while another run is active, also if that run has nothing
// installed at the moment, and if it is not known whether there is one.
func TestDisturbedByAnotherRun(t *testing.T) {
	t.Parallel()
	type runs struct {
		alive, installed []string
		err              error
	}
	other := []string{"other"}
	for name, test := range map[string]struct {
		// answers are those to the questions for other runs, in order. The last is repeated.
		answers  []runs
		failures int
		open     bool // the scenario is not exclusive
		verdict  framework.Verdict
		repeated int
		says     string
		asked    int // at least
	}{
		"alone":                          {answers: []runs{{}}, failures: 1, verdict: framework.Fail},
		"alive, with nothing installed":  {answers: []runs{{alive: other}}, failures: 1, verdict: framework.Pass, repeated: 1},
		"killed, with objects":           {answers: []runs{{}, {installed: other}, {}}, failures: 1, verdict: framework.Pass, repeated: 1},
		"ended during the wave":          {answers: []runs{{alive: other}, {}}, failures: 1, verdict: framework.Pass, repeated: 1},
		"not known":                      {answers: []runs{{}, {err: errors.New("no")}, {err: errors.New("no")}, {}}, failures: 1, verdict: framework.Pass, repeated: 1, asked: 5},
		"alone, when it is repeated":     {answers: []runs{{alive: other}, {}}, failures: 2, verdict: framework.Fail, repeated: 1},
		"alive all the time":             {answers: []runs{{alive: other}}, failures: 1000, verdict: framework.Inconclusive, repeated: repeatLimit, says: "exclusive scenario: another run was active: after 3 repetitions"},
		"alive, and it is not exclusive": {answers: []runs{{alive: other}}, failures: 1, open: true, verdict: framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := read("a.b")
			one.Spec.Exclusive = !test.open
			asked := 0
			provider := crowded{&unsteady{times: test.failures, bad: func() (framework.Result, error) { return response(404, "no"), nil }}, func() (alive, installed []string, err error) {
				answer := test.answers[min(asked, len(test.answers)-1)]
				asked++
				return answer.alive, answer.installed, answer.err
			}}
			r, err := Run(t.Context(), Options{Provider: provider, Scenarios: []scenario.Scenario{one}})
			if err != nil {
				t.Fatal(err)
			}
			if asked < test.asked {
				t.Errorf("asked %d times; want %d: it waits until it is known", asked, test.asked)
			}
			got := r.Outcomes[0]
			if got.Verdict != test.verdict || got.Repeated != test.repeated || !strings.Contains(got.Reason, test.says) {
				t.Errorf("%s after %d repetitions: %s; want %s after %d: %s", got.Verdict, got.Repeated, got.Reason, test.verdict, test.repeated, test.says)
			}
		})
	}
}

// The wait lasts as long as another run is alive, and two minutes longer if it left something.
func TestWaitForOtherRuns(t *testing.T) {
	other := []string{"other"}
	for name, test := range map[string]struct {
		alive, installed time.Duration
		unknown          error
		want             bool
	}{
		"alive for long":  {10 * time.Minute, 10 * time.Minute, nil, true},
		"removed later":   {time.Minute, 2 * time.Minute, nil, true},
		"long, and later": {10 * time.Minute, 11 * time.Minute, nil, true},
		"killed":          {time.Minute, time.Hour, nil, false},
		"unknown":         {0, time.Hour, errors.New("no right"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := &groupRun{target: crowdedTarget{runs: func() (alive, installed []string, err error) {
					if time.Since(began) < test.alive {
						alive = other
					}
					if time.Since(began) < test.installed {
						installed = other
					}
					return alive, installed, test.unknown
				}}}
				err := r.waitForOtherRuns(t.Context())
				if took := time.Since(began); (err == nil) != test.want || err != nil && (!errors.Is(err, framework.ErrTimeout) || took > test.alive+otherRunsLimit+time.Second) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}
