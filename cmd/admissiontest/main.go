// Command admissiontest runs the admission conformance catalogue, and your own
// scenarios, on a Kubernetes API server. See admissiontest help.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/cli"
)

// The process is short-lived, so it collects garbage less often than Go's default.
// The soft memory limit bounds what that costs.
const garbagePercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(cli.MemoryLimit)
		}
	}
	ctx, stop := cli.Interruptible(context.Background(), os.Stderr)
	code := cli.Main(ctx, os.Args[1:], cli.ThisProcess())
	stop()
	os.Exit(code)
}
