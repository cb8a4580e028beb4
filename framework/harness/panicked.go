package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
)

// PanicError is a panic of the plugin.
type PanicError struct {
	// In names the function of the plugin that was called, such as "the factory" or "Admit".
	In string
	// Value is the argument of panic.
	Value any
	// Frame is the function that panicked, with file and line.
	Frame string
	// Stack is the stack of the goroutine, as debug.Stack formats it.
	Stack string
}

// Error returns In, Value and Frame in one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%s panicked at %s: %v", e.In, e.Frame, e.Value)
}

// Unwrap returns Value if Value is an error, otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard calls f. If f panics, guard returns a *PanicError.
func guard(in string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			position := observe.PanicPosition()
			err = &PanicError{In: in, Value: value, Frame: position, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// waitHandlers waits for the event handlers that run because of writes of the plugin. If a handler
// panicked, it returns a *PanicError. If a handler does not return before the context ends, it
// returns no error: the World reports that handler when the test ends.
func (h *Harness) waitHandlers(ctx context.Context) error {
	var panicked *fakes.HandlerPanicError
	if errors.As(h.world.WaitHandlers(ctx), &panicked) {
		return &PanicError{In: "an event handler of the informer of " + panicked.Informer, Value: panicked.Value, Frame: panicked.Frame, Stack: panicked.Stack}
	}
	return nil
}
