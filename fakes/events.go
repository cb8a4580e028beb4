package fakes

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// handlerTimeout is how long a change by the test waits for event handlers.
const handlerTimeout = 30 * time.Second

// events has the events that event handlers have not got yet. It is guarded by the World's lock.
type events struct {
	queue []delivery
	// delivering is true while the goroutine of events runs. to is the last that it called.
	delivering bool
	to         *registration
	idle       signal
	panicked   *HandlerPanicError
}

// delivery is one event for one handler.
type delivery struct {
	to          *registration
	typ         watch.EventType
	old, object any
	initial     bool
}

// HandlerPanicError is a panic of an event handler. In an API server it ends the process.
// WaitHandlers returns it. Put, Delete and the other methods by which a test changes objects
// panic with it.
type HandlerPanicError struct {
	// Informer is the type of the informer's objects.
	Informer string
	// Value is the argument of panic.
	Value any
	// Frame is the function that panicked, with file and line.
	Frame string
	// Stack is the stack of the event handler, as debug.Stack formats it.
	Stack string
}

// Error returns Informer, Frame and Value in one line.
func (e *HandlerPanicError) Error() string {
	return fmt.Sprintf("an event handler of the informer of %s panicked at %s: %v", e.Informer, e.Frame, e.Value)
}

// enqueueLocked adds an event. The goroutine of events ends when there are none.
func (w *World) enqueueLocked(d delivery) {
	if d.initial {
		d.to.initial++
	}
	w.events.queue = append(w.events.queue, d)
	if !w.events.delivering {
		w.events.delivering = true
		go w.deliver()
	}
}

// deliver calls the handlers for all queued events, one at a time.
func (w *World) deliver() {
	for d, ok := w.nextEvent(); ok; d, ok = w.nextEvent() {
		if d.to != nil {
			w.handle(d)
		}
	}
}

// nextEvent takes an event from the queue. It has no handler if that was removed.
func (w *World) nextEvent() (d delivery, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &w.events
	if len(e.queue) == 0 {
		e.delivering, e.to = false, nil
		e.idle.raise()
		return delivery{}, false
	}
	d, e.queue = e.queue[0], e.queue[1:]
	if !slices.Contains(d.to.inf.handlers, d.to) {
		return delivery{}, true
	}
	e.to = d.to
	return d, true
}

// handleFunction is the end of the name of World.handle in a stack.
const handleFunction = "/fakes.(*World).handle"

// handle calls a handler and records its panic.
func (w *World) handle(d delivery) {
	returned := false
	defer func() {
		thrown := recover()
		w.mu.Lock()
		defer w.mu.Unlock()
		if thrown != nil && w.events.panicked == nil {
			frames := append(panicFrames(), "an unknown place")
			w.events.panicked = &HandlerPanicError{Informer: fmt.Sprint(d.to.inf.id), Value: thrown, Frame: frames[0], Stack: string(debug.Stack())}
		}
		if d.initial {
			d.to.initial--
			d.to.updateLocked()
		}
		if !returned && thrown == nil {
			go w.deliver() // the handler ended this goroutine, as T.FailNow does
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

// WaitHandlers waits until the event handlers of informers have returned for all changes. It is
// for changes by a plugin: Put, Delete and the other methods for tests wait by themselves. It
// returns an error if the context ends first, and a *HandlerPanicError if a handler has panicked.
// An event handler that calls it does not wait for itself.
func (w *World) WaitHandlers(ctx context.Context) error {
	for {
		w.mu.Lock()
		e := &w.events
		if panicked := e.panicked; panicked != nil {
			e.panicked = nil
			w.mu.Unlock()
			return panicked
		}
		if !e.delivering {
			w.mu.Unlock()
			return nil
		}
		idle, to := e.idle.wait(), e.to
		if to == nil {
			to = e.queue[0].to
		}
		w.mu.Unlock()
		if inHandler() {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("wait for event handlers: %s has not returned: %w", to, ctx.Err())
		}
	}
}

// waitForHandlers waits for the handlers after a change by the test.
func (w *World) waitForHandlers() {
	w.t.Helper()
	err := w.waitLimited()
	var panicked *HandlerPanicError
	if errors.As(err, &panicked) {
		panic(panicked) //nolint:forbidigo // as in an API server; methods of a World have no error
	}
	if err != nil {
		w.t.Fatalf("change World: %v: if the test itself keeps the handler from returning, change the World on another goroutine", err)
	}
}

func (w *World) waitLimited() error {
	ctx, cancel := context.WithTimeout(context.Background(), handlerTimeout)
	defer cancel()
	return w.WaitHandlers(ctx)
}

// reportHandlers fails the test at its end for a handler that has panicked or does not return, if
// nothing else reported it.
func (w *World) reportHandlers() {
	w.reporting.Do(func() {
		w.t.Cleanup(func() {
			if err := w.waitLimited(); err != nil {
				w.t.Errorf("end of test: %v", err)
			}
		})
	})
}

// String returns "the event handler *T of the informer of *v1.Pod".
func (r *registration) String() string {
	return fmt.Sprintf("the event handler %T of the informer of %v", r.handler, r.inf.id)
}

// inHandler reports whether an event handler calls this.
func inHandler() bool {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); strings.HasSuffix(frame.Function, handleFunction) {
			return true
		}
	}
	return false
}
