package envtest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// withoutRoute in the environment means that this process has no network but loopback.
const withoutRoute = "ADMISSIONTEST_TEST_NO_ROUTE"

// An API server starts on a machine that has no default route: offline, or a container without a network.
func TestNoRoute(t *testing.T) {
	if os.Getenv(withoutRoute) != "" {
		server, err := Start(t.Context(), Options{BinaryAssetsDirectory: assets(t).Dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		return
	}
	assets(t) // with the network: they can need a download
	const loopback = "ip link set lo up"
	isolated := func(script string, arguments ...string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		t.Cleanup(cancel)
		return exec.CommandContext(ctx, "unshare", append([]string{"-r", "-n", "sh", "-c", script}, arguments...)...)
	}
	if out, err := isolated(loopback).CombinedOutput(); err != nil {
		t.Skipf("this machine does not let a test have a network of its own (unshare -rn %s): %v %s", loopback, err, out)
	}
	command := isolated(loopback+` && exec "$0" "$@"`, os.Args[0], "-test.run", "^TestNoRoute$", "-test.v")
	command.Env = append(os.Environ(), withoutRoute+"=1")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("start without a default route: %v\n%s", err, out)
	}
}
