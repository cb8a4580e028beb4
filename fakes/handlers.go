package fakes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// handlerTimeout is how long a change by the test waits for event handlers.
const handlerTimeout = 30 * time.Second

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

// WaitHandlers waits until the event handlers of informers have returned for all changes. It is
// for changes by a plugin: Put, Delete and the other methods for tests wait by themselves. It
// returns an error if the context ends first, and a *HandlerPanicError if a handler has panicked.
// An event handler that calls it does not wait for itself.
func (w *World) WaitHandlers(ctx context.Context) error {
	panicked, err := w.informers.WaitHandlers(ctx)
	if panicked != nil {
		return (*HandlerPanicError)(panicked)
	}
	return err
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
