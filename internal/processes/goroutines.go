package processes

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

// key is the name of the profiler label.
const key = "admissiontest.dev/goroutines"

// longestPause is how long WaitUntilGone pauses between two looks, at most, unless a look takes long: a pause
// is at least pauseFactor times as long, because a profile of many goroutines keeps the whole process busy.
const (
	longestPause = 20 * time.Millisecond
	pauseFactor  = 4
)

// Label marks the goroutines that some code starts. Its zero value marks none: use
// NewLabel.
type Label struct {
	value string
	on    func()
}

// NewLabel returns a label that no other goroutine has.
func NewLabel() Label {
	value := uuid.NewString()
	labelled := pprof.WithLabels(context.Background(), pprof.Labels(key, value))
	return Label{value: value, on: func() { pprof.SetGoroutineLabels(labelled) }}
}

// Set labels the calling goroutine. The returned function gives it the labels of the
// context instead.
func (l Label) Set(ctx context.Context) (unset func()) {
	l.on()
	return func() { pprof.SetGoroutineLabels(ctx) }
}

// Do calls f on a labelled goroutine, and removes all labels afterwards.
func (l Label) Do(f func()) {
	defer l.Set(context.Background())()
	f()
}

// Running describes the goroutines that have the label, as "2 × first frame (file:line),
// now in last frame (file:line)". A goroutine that has not run yet has no frames: on a busy machine
// that can take some time.
func (l Label) Running() []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{fmt.Sprintf("read the goroutine profile: %v", err)}
	}
	var found []string
	for entry := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(entry, l.value) {
			found = append(found, describe(entry))
		}
	}
	return found
}

// WaitUntilGone waits until no goroutine has the label, or until the context ends. It
// returns the goroutines that still have it.
func (l Label) WaitUntilGone(ctx context.Context) []string { return WaitUntilGone(ctx, l.Running) }

// WaitUntilGone calls running until it returns nothing, or until the context has ended. It
// returns what running returned last: it calls running once more after the end of the context.
func WaitUntilGone(ctx context.Context, running func() []string) []string {
	pause := time.Millisecond
	for {
		ended, began := ctx.Err() != nil, time.Now()
		left := running()
		if len(left) == 0 || ended {
			return left
		}
		timer := time.NewTimer(max(pause, pauseFactor*time.Since(began)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, longestPause)
	}
}

// describe shortens an entry of the profile ("2 @ 0x…", labels, one line for each frame).
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
	if _, err := strconv.Atoi(count); err != nil {
		return entry
	}
	if len(frames) == 0 {
		return count + " × a goroutine that was started and has not run yet"
	}
	text := count + " × " + frames[len(frames)-1]
	if len(frames) > 1 {
		text += ", now in " + frames[0]
	}
	return text
}
