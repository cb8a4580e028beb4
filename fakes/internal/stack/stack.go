// Package stack finds functions in the stack of the calling goroutine, by the ends of their names.
package stack

import (
	"fmt"
	"runtime"
	"strings"
)

// Has reports whether the stack has a function whose name ends with this text, such as
// "/fakes.guarded".
func Has(function string) bool {
	return has(func(name string) bool { return strings.HasSuffix(name, function) })
}

// HasMethod reports whether the stack has a method, or a function literal in a method, of a receiver
// such as "k8s.io/client-go/tools/cache.(*Reflector)".
func HasMethod(receiver string) bool {
	return has(func(name string) bool { return strings.HasPrefix(name, receiver+".") })
}

func has(wanted func(name string) bool) bool {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); wanted(frame.Function) {
			return true
		}
	}
	return false
}

// Panic returns the place of the panic that is being recovered: the three innermost frames between
// the panic and a function whose name ends with this text.
func Panic(function string) []string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var lines []string
	for more := true; more && len(lines) < 3; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if panicking := strings.HasPrefix(frame.Function, "runtime."); panicking {
			lines = nil // frames above the panic belong to the recovery
			continue
		}
		if strings.HasSuffix(frame.Function, function) {
			break
		}
		if strings.HasPrefix(frame.Function, "reflect.") {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File[strings.LastIndex(frame.File, "/")+1:], frame.Line))
	}
	return lines
}
