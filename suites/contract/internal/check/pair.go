package check

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// blocked is how long a call of a pair waits for the other one, which can wait for a lock that the first one holds.
const blocked = 5 * time.Millisecond

// pair is two calls that run in step.
type pair struct {
	// turns lets the calls take turns. Otherwise they go on at the same time.
	turns   bool
	arrived [2]atomic.Int64
	done    [2]atomic.Bool
	// free is true if a call has waited for too long. Then none waits any more.
	free atomic.Bool
}

// SendPair sends a request twice at the same time. Whenever a call asks for an attribute, it lets the other call come
// as far, or one step farther if they take turns. InStep is false if one call could not, because of a lock for example.
func SendPair(ctx context.Context, h *harness.Harness, request framework.Request, turns bool) (responses []Response, inStep bool) {
	p := &pair{turns: turns}
	responses = make([]Response, len(p.done))
	var wait sync.WaitGroup
	for me := range responses {
		wait.Go(func() {
			defer p.done[me].Store(true)
			p.meet(me)
			responses[me] = SendYielding(ctx, h, request, func() { p.meet(me) })
		})
	}
	wait.Wait()
	return responses, !p.free.Load()
}

// meet waits until the other call has arrived as often as this one. If they take turns, the second call is one step
// ahead of the first one when the first one goes on.
func (p *pair) meet(me int) {
	other := 1 - me
	need := p.arrived[me].Add(1)
	if p.turns && me == 0 {
		need++
	}
	for started := time.Now(); p.arrived[other].Load() < need && !p.done[other].Load() && !p.free.Load(); {
		runtime.Gosched()
		if time.Since(started) > blocked {
			p.free.Store(true)
		}
	}
}
