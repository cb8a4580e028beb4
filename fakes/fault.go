package fakes

import (
	"context"
	"sync"
)

// fault makes calls with a verb and resource fail or wait.
type fault struct {
	verb, resource string
	err            error
	gate           chan struct{} // not nil for BlockOn: calls wait until it is closed
}

// FailOn makes calls with this verb and resource fail, written as for Calls.Has. An error with a
// Status, such as an error of k8s.io/apimachinery/pkg/api/errors, is the response of the server. Any
// other error is an error of the connection. If several calls of FailOn match, the last one
// decides; with a nil error it makes the calls succeed again. A verb or resource that does not exist
// ends the test, with a message at the caller's line.
func (w *World) FailOn(verb, resource string, err error) {
	w.t.Helper()
	if wrong := w.checkNotation(verb, resource); wrong != nil {
		w.t.Fatalf("FailOn: %v", wrong)
		return
	}
	w.store.Lock()
	defer w.store.Unlock()
	w.faults = append(w.faults, fault{verb: verb, resource: resource, err: err})
}

// BlockOn makes calls with this verb and resource wait, written as for Calls.Has, until the test
// calls release or the context of the call ends. A call is recorded before it waits: see WaitCall. A
// verb or resource that does not exist ends the test, with a message at the caller's line.
func (w *World) BlockOn(verb, resource string) (release func()) {
	w.t.Helper()
	if err := w.checkNotation(verb, resource); err != nil {
		w.t.Fatalf("BlockOn: %v", err)
		return func() {}
	}
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
		case !is(call, f.verb, f.resource):
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
