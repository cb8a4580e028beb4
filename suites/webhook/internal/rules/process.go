package rules

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// processRules returns the rules for the program that serves the webhooks: it is started, and ended.
func processRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-PERF-4", Name: "a-stop-loses-no-call", Level: framework.Should, OnRequest: true,
			Title:  "After SIGTERM, each call over a connection that the API server has kept open gets its answer.",
			Why:    "In each rollout, the API server still sends reviews over its open connections to the old Pod. A connection that is closed meanwhile is a refused request of a client, or one that was not checked.",
			Fix:    "After SIGTERM, go on for some seconds, and answer with the header Connection: close. Then call http.Server.Shutdown.",
			Source: []string{"https://github.com/openchoreo/openchoreo/issues/3723", "https://github.com/openchoreo/openchoreo/pull/3743", "https://github.com/knative/pkg/issues/1509"},
			Check:  checkStop,
		},
		{
			ID: "WH-SEC-5", Name: "renewed-certificates-are-used", Level: framework.Should, OnRequest: true,
			Title:  "A renewed certificate is used for new connections within two minutes, without a restart and without a lost call.",
			Why:    "A certificate that is read once expires in the memory of the process. Then no call of the webhook succeeds, weeks after the last change.",
			Fix:    "Set tls.Config.GetCertificate to a function that reads the files again, such as controller-runtime's certwatcher.",
			Source: []string{"https://github.com/k8tz/k8tz/issues/1", "https://github.com/deckhouse/deckhouse/pull/22793"},
			Check:  checkRenewal,
		},
	}
}

// callers is how many clients call a program at the same time, each over its own connection.
const callers = 8

// process starts the program of the Subject. It returns nil if the program does not answer.
func process(t *check.T) (*check.Process, check.Case) {
	if len(t.Process) == 0 {
		t.Unsupported("no process can be ended; a test in Go can give Subject.Process")
	}
	c := t.Cases()[0]
	p, err := t.StartProcess(c)
	if err != nil {
		t.Unobserved("%v", err)
		return nil, c
	}
	return p, c
}

// load calls a program until the context ends, or each caller finds no connection. It counts the calls, and records
// the errors of those that had a connection.
type load struct {
	answered, lost atomic.Int64
	first          atomic.Pointer[error]
	running        sync.WaitGroup
}

func startLoad(ctx context.Context, t *check.T, p *check.Process, c check.Case) *load {
	l := &load{}
	for range callers {
		client := p.Client()
		l.running.Go(func() {
			defer client.Close()
			for ctx.Err() == nil {
				if _, err := client.Call(ctx, check.Encode(t.Review(c.Request))); !l.count(ctx, err) {
					return
				}
			}
		})
	}
	return l
}

// count counts a call, and reports whether the caller goes on.
func (l *load) count(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		l.answered.Add(1)
	case ctx.Err() != nil:
	case errors.Is(err, check.ErrNotConnected):
		return false
	default:
		l.lost.Add(1)
		l.first.CompareAndSwap(nil, &err)
	}
	return true
}

// slowFor is how long after SIGTERM the slow calls go on.
const slowFor = 100 * time.Millisecond

// startSlow begins one more call for each caller, and returns when the program has got the beginnings. The calls go on
// when the result is closed. So some calls are under way at SIGTERM, however fast the program is.
func (l *load) startSlow(ctx context.Context, t *check.T, p *check.Process, c check.Case) (rest chan struct{}) {
	rest = make(chan struct{})
	for range callers {
		client, begun := p.Client(), make(chan struct{})
		l.running.Go(func() {
			defer client.Close()
			_, err := client.Call(ctx, check.Encode(t.Review(c.Request)))
			if !l.count(ctx, err) || err != nil {
				close(begun)
				return
			}
			_, err = client.CallSlowly(ctx, check.Encode(t.Review(c.Request)), begun, rest)
			l.count(ctx, err)
		})
		<-begun
	}
	return rest
}

func checkStop(t *check.T) {
	p, c := process(t)
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l := startLoad(ctx, t, p, c)
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		return l.answered.Load() > 20*callers, nil
	})
	if err != nil {
		t.Unobserved("the program answered %d calls in five seconds; want more, for calls during its end", l.answered.Load())
		return
	}
	rest := l.startSlow(ctx, t, p, c)
	time.AfterFunc(slowFor, func() { close(rest) })
	p.Stop()
	l.running.Wait()
	t.Reached()
	if lost := l.lost.Load(); lost > 0 {
		t.Errorf("%d of %d calls over open connections were lost after SIGTERM, the first with: %v", lost, lost+l.answered.Load(), *l.first.Load())
	}
}

func checkRenewal(t *check.T) {
	p, c := process(t)
	if p == nil {
		return
	}
	if newest, err := p.Newest(t.Context()); err != nil || !newest {
		t.Unobserved("the program does not serve the certificate in {cert-dir}: %v", err)
		return
	}
	if err := p.Renew(); err != nil {
		t.Unobserved("renew the certificate: %v", err)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := startLoad(ctx, t, p, c)
	began, limit := time.Now(), t.RenewalLimit()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		newest, err := p.Newest(ctx)
		return newest && err == nil, nil
	})
	cancel()
	l.running.Wait()
	switch {
	case err != nil && time.Since(began) < limit:
		t.Unobserved("the old certificate was used until the budget ended, for %s; give webhook.Budget more than %s", time.Since(began).Round(time.Second), limit)
		return
	case err != nil:
		t.Errorf("the old certificate is still used after %s", limit)
	}
	t.Reached()
	if lost := l.lost.Load(); lost > 0 {
		t.Errorf("%d of %d calls were lost, the first with: %v", lost, lost+l.answered.Load(), *l.first.Load())
	}
}
