package harness

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// PanicError is a panic of the plugin.
type PanicError struct {
	// In is what was called: "the factory", "Admit".
	In string
	// Value is what it panicked with.
	Value any
	// Frame is the function that panicked, with file and line.
	Frame string
	// Stack is the stack of the goroutine.
	Stack string
}

// Error returns one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%s panicked at %s: %v", e.In, e.Frame, e.Value)
}

// Unwrap returns the error that it panicked with, if it was one.
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

// panicFrame finds who panicked: the first frame below the runtime's own, seen from a
// deferred function.
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
