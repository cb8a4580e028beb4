package contract

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/uuid"
)

// begun is the label of goroutines that something has begun. Whoever begins one passes
// its labels on, so that tests beside this one do not disturb.
type begun string

// begin calls f, and marks what goroutines it begins. F must not call a Harness, which
// marks them itself.
func begin(f func()) begun {
	const key = "admissiontest.dev/contract"
	mark := uuid.NewString()
	pprof.Do(context.Background(), pprof.Labels(key, mark), func(context.Context) { f() })
	return begun(mark)
}

// left returns the goroutines that do not end by themselves, a moment granted.
func (b begun) left(ctx context.Context, moment time.Duration) []string {
	return outlast(ctx, moment, b.running)
}

func (b begun) running() []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{fmt.Sprintf("the goroutine profile cannot be read: %v", err)}
	}
	var found []string
	for entry := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(entry, string(b)) {
			found = append(found, outermost(entry))
		}
	}
	return found
}

// outermost is the function that a goroutine of the profile began with.
func outermost(entry string) string {
	name := ""
	for line := range strings.Lines(entry) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == "#" {
			name, _, _ = strings.Cut(fields[2], "+0x")
			name += " (" + fields[3][strings.LastIndex(fields[3], "/")+1:] + ")"
		}
	}
	return name
}

// outlast asks who runs until nobody does, or the moment has passed.
func outlast(ctx context.Context, moment time.Duration, running func() []string) []string {
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	left := running()
	for wait := time.Millisecond; len(left) > 0; wait = min(2*wait, 20*time.Millisecond) {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return left
		case <-timer.C:
		}
		left = running()
	}
	return nil
}
