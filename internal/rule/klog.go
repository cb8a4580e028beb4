package rule

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// maxLogLines is how many lines of klog an Outcome has at most. It has the last lines.
const maxLogLines = 20

// klogs receives what is logged with klog while checks run. klog has one output for the whole
// process, so a check also gets what another check logs at the same time.
var klogs logRouter //nolint:gochecknoglobals // klog's output is global

// logRouter writes to each of its buffers.
type logRouter struct {
	mu      sync.Mutex
	buffers []*bytes.Buffer

	// setting protects klog's settings. Lock it before mu. Do not hold mu during a call of a setter
	// of klog: klog holds its own lock while it calls Write, and the setters take the same lock.
	setting   sync.Mutex
	captures  int
	threshold string // the original value of klog's flag, while there are captures
}

// Write implements io.Writer.
func (r *logRouter) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, each := range r.buffers {
		each.Write(line)
	}
	return len(line), nil
}

// capture keeps klog's output from stderr until the returned function is called, which returns
// the output. It changes nothing if the process has already configured klog.
func (r *logRouter) capture() (end func() string) {
	r.setting.Lock()
	defer r.setting.Unlock()
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags) // the flags now have klog's settings
	threshold := flags.Lookup("stderrthreshold").Value
	if r.captures == 0 {
		if flags.Lookup("logtostderr").Value.String() != "true" {
			return func() string { return "" }
		}
		r.threshold = threshold.String()
		for _, severity := range []string{"WARNING", "ERROR", "FATAL"} {
			klog.SetOutputBySeverity(severity, io.Discard) // klog writes each line to INFO, whatever its severity
		}
		klog.SetOutputBySeverity("INFO", r)
		_ = threshold.Set("FATAL") // a known name
		klog.LogToStderr(false)
	}
	r.captures++
	buffer := &bytes.Buffer{}
	r.add(buffer)
	return func() string {
		r.setting.Lock()
		defer r.setting.Unlock()
		if r.captures--; r.captures == 0 {
			klog.LogToStderr(true)
			_ = threshold.Set(r.threshold) // the value that it had
		}
		return r.remove(buffer)
	}
}

func (r *logRouter) add(buffer *bytes.Buffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buffers = append(r.buffers, buffer)
}

// remove removes a buffer from the router and returns its text.
func (r *logRouter) remove(buffer *bytes.Buffer) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buffers = slices.DeleteFunc(r.buffers, func(each *bytes.Buffer) bool { return each == buffer })
	return lastLines(buffer.String())
}

// lastLines returns the last lines of a log, and how many others there were.
func lastLines(log string) string {
	log = strings.TrimSpace(log)
	lines := strings.Split(log, "\n")
	if more := len(lines) - maxLogLines; more > 0 {
		return fmt.Sprintf("(%d earlier lines)\n%s", more, strings.Join(lines[more:], "\n"))
	}
	return log
}
