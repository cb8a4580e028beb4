package observe

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// PanicPosition returns the function, file and line of the panic that is being recovered.
func PanicPosition() string {
	counters := make([]uintptr, 128)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	position := ""
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			position = "" // the functions above recover the panic
		case strings.HasSuffix(frame.Function, ").observed"):
			return position // the functions below are no plugin's
		case position == "" && !strings.HasPrefix(frame.Function, "runtime."):
			position = fmt.Sprintf("%s (%s:%d)", frame.Function, path.Base(frame.File), frame.Line)
		}
	}
	return position
}
