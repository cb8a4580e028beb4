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
)

// dying is a Provider and a Target whose API server ends during the first request, which gets no response.
type dying struct {
	unsteady
	ended chan struct{}
}

func (e *dying) Start(context.Context, target.StartOptions) (target.Target, error) {
	return dyingTarget{unsteadyTarget{fakeTarget{sandbox: e}, &e.unsteady}, e}, nil
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

// An API server that does not respond, or cannot reach its storage, for longer than a restart takes ends the run.
func TestServerIsGone(t *testing.T) {
	for name, bad := range map[string]func() (framework.Result, error){
		"no response": func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse },
		"no storage":  func() (framework.Result, error) { return response(504, "request did not complete"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := Run(t.Context(), Options{Provider: &unsteady{bad: bad, times: 1, dead: 1 << 20}, Scenarios: []scenario.Scenario{read("a.one")}})
				if took := time.Since(began); !errors.Is(err, target.ErrGone) || took > restartLimit+time.Second {
					t.Errorf("the run ended after %s with %v; want %v after %s", took, err, target.ErrGone, restartLimit)
				}
			})
		})
	}
}
