package harness

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
)

// PanicError is a panic of the plugin.
type PanicError struct {
	// In is the function that was called, such as "the factory" or "Admit".
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

// Unwrap returns Value if it is an error, and else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard calls f and returns a panic of it as a *PanicError.
func guard(in string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{In: in, Value: value, Frame: panicFrame(), Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// waitHandlers waits for the event handlers that writes of the plugin have called. It returns a
// panic of one as a *PanicError. A handler that does not return before the context ends is not an
// error here: the World reports it when the test ends.
func (h *Harness) waitHandlers(ctx context.Context) error {
	var panicked *fakes.HandlerPanicError
	if errors.As(h.world.WaitHandlers(ctx), &panicked) {
		return &PanicError{In: "an event handler of the informer of " + panicked.Informer, Value: panicked.Value, Frame: panicked.Frame, Stack: panicked.Stack}
	}
	return nil
}

// panicFrame returns the function that panicked: the first frame below those of the runtime. A
// deferred function calls it.
func panicFrame() string {
	counters := make([]uintptr, 64)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	panicking := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s (%s:%d)", frame.Function, path.Base(frame.File), frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
