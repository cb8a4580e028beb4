package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible returns a context that is cancelled by the first SIGINT, SIGTERM or SIGHUP,
// so that a run can clean up. The second signal ends the process at once. The returned
// function restores the default behaviour.
//
// SIGPIPE does not end the process: if the reader of the output ends, the run must still clean up.
func Interruptible(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, pipes := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup makes the process ignore SIGHUP
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(pipes, syscall.SIGPIPE) // a write to a closed pipe returns an error instead
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		_, _ = fmt.Fprintln(stderr, "admissiontest: interrupted, cleaning up; interrupt again to exit at once")
		cancel()
		select {
		case <-signals:
			os.Exit(exitInterrupted)
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
