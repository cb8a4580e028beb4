package fakes

import (
	"context"
	"errors"
	"time"

	"github.com/admissiontest/admissiontest/fakes/internal/informer"
)

// handlerTimeout is how long a change by the test waits for event handlers.
const handlerTimeout = 30 * time.Second

// HandlerPanicError is a panic of an event handler, which would end the process of an API server.
// WaitHandlers returns it as an error. Put, Delete and the other methods by which a test changes
// objects panic with a *HandlerPanicError. The fields are:
//
//	Informer  the type of the informer's objects
//	Value     the argument of panic
//	Frame     the function that panicked, with file and line
//	Stack     the stack of the event handler, as debug.Stack formats it
type HandlerPanicError = informer.PanicError

// WaitHandlers waits until the event handlers of informers have returned for all changes so far.
// Call it after changes by a plugin: Put, Delete and the other methods for tests wait by
// themselves. It returns the error of the context if the context ends first, and a
// *HandlerPanicError if a handler has panicked. If an event handler calls WaitHandlers, the call
// does not wait for that handler. It also waits until informers that plugins made themselves have
// received all changes so far, but at most a fifth of a second.
func (w *World) WaitHandlers(ctx context.Context) error {
	w.server.Informers.Wait(ctx)
	panicked, err := w.informers.WaitHandlers(ctx)
	if panicked != nil {
		return panicked
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

// reportHandlers makes the test fail at its end if a handler has panicked or has not returned, and
// nothing has reported that yet.
func (w *World) reportHandlers() {
	w.reporting.Do(func() {
		w.t.Cleanup(func() {
			if err := w.waitLimited(); err != nil {
				w.t.Errorf("end of test: %v", err)
			}
		})
	})
}
