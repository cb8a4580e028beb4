package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP
// cancels, so that a run can clean up; the second ends the process at once. The
// function returned ends that.
//
// A reader of our output that goes away does not end the process: it would leave
// behind what the run created.
func Interruptible(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, pipes := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(pipes, syscall.SIGPIPE) // nobody reads: writing returns an error
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		_, _ = fmt.Fprintln(stderr, "admissiontest: interrupted, cleaning up; interrupt again to end at once")
		cancel()
		select {
		case <-signals:
			os.Exit(ExitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		signal.Stop(signals)
		signal.Stop(pipes)
		cancel()
	}
}
