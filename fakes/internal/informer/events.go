package informer

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/fakes/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
	"github.com/admissiontest/admissiontest/internal/processes"
	"k8s.io/apimachinery/pkg/watch"
)

// events is the queue of events that event handlers have not received yet. The lock of the Store
// guards it.
type events struct {
	queue []delivery
	// delivering is true while the goroutine that calls handlers runs. to is the handler that it
	// called last.
	delivering bool
	to         *registration
	idle       apiserver.Signal
	panicked   *PanicError
}

// delivery is one event for one handler.
type delivery struct {
	to          *registration
	typ         watch.EventType
	old, object any
	initial     bool
}

// PanicError is a panic of an event handler. Package fakes documents its fields.
type PanicError struct {
	Informer string
	Value    any
	Frame    string
	Stack    string
}

// Error returns Informer, Frame and Value in one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("an event handler of the informer of %s panicked at %s: %v", e.Informer, e.Frame, e.Value)
}

// enqueueLocked adds an event to the queue, and starts the goroutine that calls handlers if it does
// not run. That goroutine ends when the queue is empty.
func (s *Set) enqueueLocked(d delivery) {
	if d.initial {
		d.to.initial++
	}
	s.events.queue = append(s.events.queue, d)
	if !s.events.delivering {
		s.events.delivering = true
		go s.deliver()
	}
}

// deliver calls the handlers for all queued events, one at a time.
func (s *Set) deliver() {
	for d, ok := s.nextEvent(); ok; d, ok = s.nextEvent() {
		if d.to != nil {
			s.handle(d)
		}
	}
}

// nextEvent takes an event from the queue. The event has no handler if the handler was removed in
// the meantime.
func (s *Set) nextEvent() (d delivery, ok bool) {
	s.store.Lock()
	defer s.store.Unlock()
	e := &s.events
	if len(e.queue) == 0 {
		e.delivering, e.to = false, nil
		e.idle.Raise()
		return delivery{}, false
	}
	d, e.queue = e.queue[0], e.queue[1:]
	if !slices.Contains(d.to.inf.handlers, d.to) {
		return delivery{}, true
	}
	e.to = d.to
	return d, true
}

// handle calls a handler and records its panic.
func (s *Set) handle(d delivery) {
	returned := false
	defer func() {
		thrown := recover()
		s.store.Lock()
		defer s.store.Unlock()
		if thrown != nil && s.events.panicked == nil {
			position := observe.PanicPosition()
			s.events.panicked = &PanicError{Informer: fmt.Sprint(d.to.inf.id), Value: thrown, Frame: position, Stack: string(debug.Stack())}
		}
		if d.initial {
			d.to.initial--
			d.to.updateLocked()
		}
		if !returned && thrown == nil {
			go s.deliver() // the handler ended this goroutine with runtime.Goexit, as T.FailNow does
		}
	}()
	switch d.typ {
	case watch.Added:
		d.to.handler.OnAdd(d.object, d.initial)
	case watch.Modified:
		d.to.handler.OnUpdate(d.old, d.object)
	default:
		d.to.handler.OnDelete(d.object)
	}
	returned = true
}

// WaitHandlers waits until the event handlers have returned for all changes so far. It returns an
// error if the context ends first. If a handler has panicked, it returns the panic; only the first
// call returns it. If an event handler calls WaitHandlers, the call does not wait for that handler.
func (s *Set) WaitHandlers(ctx context.Context) (*PanicError, error) {
	for {
		s.store.Lock()
		e := &s.events
		if panicked := e.panicked; panicked != nil {
			e.panicked = nil
			s.store.Unlock()
			return panicked, nil
		}
		if !e.delivering {
			s.store.Unlock()
			return nil, nil
		}
		idle, to := e.idle.Wait(), e.to
		if to == nil {
			to = e.queue[0].to
		}
		s.store.Unlock()
		if processes.In(func(function string) bool {
			return strings.HasSuffix(function, "/fakes/internal/informer.(*Set).handle")
		}) {
			return nil, nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for event handlers: %s has not returned: %w", to, ctx.Err())
		}
	}
}

// String returns "the event handler *T of the informer of *v1.Pod".
func (r *registration) String() string {
	return fmt.Sprintf("the event handler %T of the informer of %v", r.handler, r.inf.id)
}
