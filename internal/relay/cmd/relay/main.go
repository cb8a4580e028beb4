// Relay is the program of the pod through which an API server reaches the Hooks of a run. It
// forwards each connection unchanged to that run. Package internal/providers starts it; it is not
// for use by hand.
//
//	relay             # waits, so that the pod stays
//	relay ADDRESS...  # forwards connections to these addresses through stdin and stdout
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/admissiontest/admissiontest/internal/relay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout}); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "relay: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// run serves or waits until ctx ends.
func run(ctx context.Context, addresses []string, channel io.ReadWriteCloser) error {
	if len(addresses) == 0 {
		<-ctx.Done()
		return nil
	}
	listening, err := relay.Listen(addresses...)
	if err != nil {
		return err
	}
	return listening.Run(ctx, channel)
}

// stdio is the channel.
type stdio struct {
	io.Reader
	io.WriteCloser
}
