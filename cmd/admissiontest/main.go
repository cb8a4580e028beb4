// Command admissiontest runs the admission conformance catalogue, and scenarios of
// your own, on a Kubernetes API server. See admissiontest help.
package main

import (
	"context"
	"os"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/cli"
)

func main() {
	ctx, stop := cli.Interruptible(context.Background(), os.Stderr)
	code := cli.Main(ctx, os.Args[1:], cli.ThisProcess())
	stop()
	os.Exit(code)
}
