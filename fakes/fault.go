package fakes

import (
	"context"
	"sync"
)

// fault makes calls with a verb and resource fail or wait.
type fault struct {
	verb, resource string
	err            error
	gate           chan struct{} // not nil: wait until it is closed
}

// FailOn makes calls with this verb and resource, written as for Calls.Has, fail. If the
// error has a Status, as those of k8s.io/apimachinery/pkg/api/errors have, it is the server's
// response. Any other error is one of the connection. The last FailOn that matches a call
// counts. A nil error makes such calls succeed again.
func (w *World) FailOn(verb, resource string, err error) {
	w.store.Lock()
	defer w.store.Unlock()
	w.faults = append(w.faults, fault{verb: verb, resource: resource, err: err})
}

// BlockOn makes calls with this verb and resource, written as for Calls.Has, wait until
// release is called or their context ends. Calls are recorded before they wait, see WaitCall.
func (w *World) BlockOn(verb, resource string) (release func()) {
	gate := make(chan struct{})
	w.store.Lock()
	defer w.store.Unlock()
	w.faults = append(w.faults, fault{verb: verb, resource: resource, gate: gate})
	return sync.OnceFunc(func() { close(gate) })
}

// suffer applies the faults that match a call: it waits, and returns the error.
func (w *World) suffer(ctx context.Context, call Call) error {
	w.store.Lock()
	var err error
	var gates []chan struct{}
	for _, f := range w.faults {
		switch {
		case !call.is(f.verb, f.resource):
		case f.gate != nil:
			gates = append(gates, f.gate)
		default:
			err = f.err
		}
	}
	w.store.Unlock()
	for _, gate := range gates {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
