// Relay is the program of the pod through which an API server reaches the Hooks of a run. It
// forwards each connection unchanged to that run. Package internal/providers starts it; it is not
// for use by hand.
//
//	relay TOKEN-FILE CONTROL-ADDRESS HEALTH-ADDRESS ADDRESS...
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/admissiontest/admissiontest/internal/relay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "relay: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("got %d arguments, want TOKEN-FILE CONTROL-ADDRESS HEALTH-ADDRESS and one ADDRESS or more", len(args))
	}
	token, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	listening, err := relay.Listen(relay.Options{
		Token: string(bytes.TrimSpace(token)), Control: args[1], Health: args[2], Ports: args[3:],
	})
	if err != nil {
		return err
	}
	return listening.Run(ctx)
}
