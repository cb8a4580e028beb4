package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// Close closes the channel of the drained notification, and waits until the goroutines of the
// plugin have ended or the context ends. The error lists the goroutines that still run, and the
// changes to cached objects that the plugin made outside of calls. Nil if there are none.
func (h *Harness) Close(ctx context.Context) error {
	h.initializer.Drain()
	var wrong []string
	for _, goroutine := range processes.WaitUntilGone(ctx, h.Goroutines) {
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

// Goroutines describes the goroutines of the plugin that still run: how many, where they were
// started and where they are now. It leaves out goroutines of idle connections of Go's HTTP client,
// because they end by themselves.
func (h *Harness) Goroutines() []string {
	return slices.DeleteFunc(h.own.Running(), func(goroutine string) bool {
		return strings.Contains(goroutine, " net/http.(*persistConn).readLoop ") || strings.Contains(goroutine, " net/http.(*persistConn).writeLoop ")
	})
}
