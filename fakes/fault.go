package fakes

import (
	"context"
	"sync"
)

// fault is what happens to calls of a verb and resource.
type fault struct {
	verb, resource string
	err            error
	gate           chan struct{} // not nil: wait until it is closed
}

// FailOn has calls fail. A verb or resource of "*" means every one; a subresource is
// written "pods/status", a group "deployments.apps". An error with a Status, as those
// of k8s.io/apimachinery/pkg/api/errors, is what the server answers; any other is one
// of the connection. The last FailOn that fits a call counts; nil has it succeed again.
func (w *World) FailOn(verb, resource string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fault{verb: verb, resource: resource, err: err})
}

// BlockOn has calls wait until release is called or their context has ended. Verb and
// resource are as for FailOn. Calls are recorded before they wait, see WaitCall.
func (w *World) BlockOn(verb, resource string) (release func()) {
	gate := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fault{verb: verb, resource: resource, gate: gate})
	return sync.OnceFunc(func() { close(gate) })
}

// suffer has a call wait and fail as was asked for.
func (w *World) suffer(ctx context.Context, call Call) error {
	w.mu.Lock()
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
	w.mu.Unlock()
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
