package hook

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
)

// Recording has the calls that the Hooks of one owner receive between
// [Server.Record] and Stop. Several Recordings of one owner can be open; each has
// every call.
type Recording struct {
	owner *owner
	// guarded by owner.mu
	calls []*framework.Call
	err   error
}

// Record starts a Recording for an owner. Stop ends it.
func (s *Server) Record(ownerName string) *Recording {
	s.mu.Lock()
	of := s.ownerOrNew(ownerName)
	s.mu.Unlock()
	recording := &Recording{owner: of}
	of.mu.Lock()
	defer of.mu.Unlock()
	of.recordings = append(of.recordings, recording)
	return recording
}

// Stop ends the Recording. Its calls remain readable.
func (r *Recording) Stop() {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	r.owner.recordings = slices.DeleteFunc(r.owner.recordings, func(other *Recording) bool { return other == r })
}

// waitLimit is how long Wait waits.
const waitLimit = time.Second

// Wait returns when all calls have ended. It is for a client that has its response: an API server
// that has given a call up has ended it, and the Hook is about to notice. A call that has not ended
// after a second is still open.
func (r *Recording) Wait(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, waitLimit, true, func(context.Context) (bool, error) {
		r.owner.mu.Lock()
		defer r.owner.mu.Unlock()
		return !slices.ContainsFunc(r.calls, func(call *framework.Call) bool { return call.Finished.IsZero() }), nil
	})
}

// Calls returns copies of the calls so far, in the order of arrival. A call that is
// not yet answered has a zero Finished. Finished is set just before the answer is
// sent: a client that has the answer finds Finished set, and not later than now.
func (r *Recording) Calls() framework.Trace {
	r.owner.mu.Lock()
	calls := make(framework.Trace, 0, len(r.calls))
	for _, call := range r.calls {
		calls = append(calls, *call)
	}
	r.owner.mu.Unlock()
	// The maps and slices of a call do not change after they are set, so they are copied
	// without the lock.
	for i := range calls {
		calls[i].Header = calls[i].Header.Clone()
		calls[i].Protocols = slices.Clone(calls[i].Protocols)
		calls[i].Query = maps.Clone(calls[i].Query)
		for name, values := range calls[i].Query {
			calls[i].Query[name] = slices.Clone(values)
		}
		calls[i].Review = runtime.DeepCopyJSON(calls[i].Review)
		calls[i].Response = runtime.DeepCopyJSON(calls[i].Response)
	}
	return calls
}

// Err returns the first error since the Recording started: one that a Meanwhile
// function returned, or an answer that could not be encoded. Nil if there was none.
func (r *Recording) Err() error {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	return r.err
}
