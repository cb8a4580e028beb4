package harness

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// labelKey names the label that goroutines of a Harness's plugin have.
const labelKey = "admissiontest.dev/harness"

// label marks goroutines as those of one Harness. Whoever starts a goroutine passes
// the label on to it (see [pprof.Do]): so what the plugin starts is told from what
// tests beside it start, even of the same package.
type label struct {
	value string
	on    func()
}

func newLabel() label {
	value := uuid.NewString()
	labelled := pprof.WithLabels(context.Background(), pprof.Labels(labelKey, value))
	return label{value: value, on: func() { pprof.SetGoroutineLabels(labelled) }}
}

// set labels this goroutine until the returned function is called, which gives it the
// labels of the context.
func (l label) set(ctx context.Context) (unset func()) {
	l.on()
	return func() { pprof.SetGoroutineLabels(ctx) }
}

// goroutines returns where those that have the label were and who began them.
func (l label) goroutines() []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{fmt.Sprintf("read the goroutine profile: %v", err)}
	}
	var found []string
	for _, entry := range strings.Split(profile.String(), "\n\n") {
		if strings.Contains(entry, l.value) {
			found = append(found, describe(entry))
		}
	}
	return found
}

// describe shortens an entry of the profile ("2 @ 0x…", labels, a line a frame) to
// "2 in <frame>, of <first frame>".
func describe(entry string) string {
	lines := strings.Split(strings.TrimSpace(entry), "\n")
	count, _, _ := strings.Cut(lines[0], " ")
	var frames []string
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "#" || !strings.HasPrefix(fields[1], "0x") {
			continue
		}
		name, _, _ := strings.Cut(fields[2], "+0x")
		file := fields[len(fields)-1]
		frames = append(frames, fmt.Sprintf("%s (%s)", name, file[strings.LastIndex(file, "/")+1:]))
	}
	if _, err := strconv.Atoi(count); err != nil || len(frames) == 0 {
		return entry
	}
	text := count + " × " + frames[len(frames)-1]
	if len(frames) > 1 {
		text += ", now in " + frames[0]
	}
	return text
}

// Close drains the plugin and waits, as long as the context allows, until its
// goroutines have ended. The error names those that have not, and the cached objects
// that the plugin changed while none of its calls ran.
func (h *Harness) Close(ctx context.Context) error {
	h.initializer.Drain()
	left := h.own.goroutines()
	for wait := time.Millisecond; len(left) > 0 && ctx.Err() == nil; wait = min(2*wait, 50*time.Millisecond) {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		left = h.own.goroutines()
	}
	return h.verdict(left)
}

// verdict is the error of Close.
func (h *Harness) verdict(left []string) error {
	var wrong []string
	for _, goroutine := range left {
		wrong = append(wrong, "goroutine of the plugin still runs after the drained notification: "+goroutine)
	}
	for _, edit := range h.snapshot.Mutations() {
		wrong = append(wrong, "the plugin changed a cached object: "+edit.String())
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("close harness of %T: %s", h.plugin, strings.Join(wrong, "\n"))
}
