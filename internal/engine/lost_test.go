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
