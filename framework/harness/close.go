package harness

import (
	"context"
	"fmt"
	"strings"
)

// Close drains the plugin and waits, as long as the context allows, until its
// goroutines have ended. The error names those that have not, and the cached objects
// that the plugin changed while none of its calls ran.
func (h *Harness) Close(ctx context.Context) error {
	h.initializer.Drain()
	return h.verdict(h.own.WaitUntilGone(ctx))
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
