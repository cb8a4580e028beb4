package processes

import "runtime"

// In reports whether the calling goroutine is in a function with one of the wanted names, such as
// "k8s.io/client-go/tools/cache.(*Reflector).Run".
func In(wanted func(function string) bool) bool {
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
