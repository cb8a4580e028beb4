package harness

import (
	"context"
	"fmt"
	"strings"
)

// Close closes the channel of the drained notification and waits until the goroutines of the
// plugin have ended or the context ends. The error has the goroutines that still run, and the
// changes to cached objects that the plugin made outside of calls.
func (h *Harness) Close(ctx context.Context) error {
	h.initializer.Drain()
	return h.verdict(h.own.WaitUntilGone(ctx))
}

// verdict returns the error of Close.
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
