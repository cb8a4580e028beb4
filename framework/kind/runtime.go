package kind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// ErrNoRuntime means: no container runtime that kind supports responds on this machine.
var ErrNoRuntime = errors.New("no container runtime that kind can use")

// responseLimit is the limit for the response of a container runtime.
const responseLimit = 20 * time.Second

// connect returns kind's provider for the container runtime that KIND_EXPERIMENTAL_PROVIDER names, or else
// that kind finds. The error is an ErrNoRuntime.
func connect(ctx context.Context, progress func(string)) (*kindcluster.Provider, error) {
	option, err := runtimeOption(os.Getenv("KIND_EXPERIMENTAL_PROVIDER"))
	var found *kindcluster.Provider
	if err == nil {
		found = kindcluster.NewProvider(option, kindcluster.ProviderWithLogger(logger{progress}))
		limited, cancel := context.WithTimeoutCause(ctx, responseLimit, fmt.Errorf("no response within %s", responseLimit))
		defer cancel()
		err = until(limited, func() error { _, err := found.List(); return err })
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("find container runtime: %w: %w; install and start Docker, Podman or nerdctl, or use --target envtest, which needs none",
			ErrNoRuntime, err)
	}
	return found, nil
}

// runtimeOption returns the option for the runtime of a name, or for the first that is installed.
func runtimeOption(chosen string) (kindcluster.ProviderOption, error) {
	switch chosen {
	case "":
		return kindcluster.DetectNodeProvider()
	case "docker":
		return kindcluster.ProviderWithDocker(), nil
	case "podman":
		return kindcluster.ProviderWithPodman(), nil
	case "nerdctl", "finch", "nerdctl.lima":
		return kindcluster.ProviderWithNerdctl(chosen), nil
	}
	return nil, fmt.Errorf("KIND_EXPERIMENTAL_PROVIDER is %s", chosen)
}

// until calls do, and returns its error with the output of what failed, or the cause of the end of ctx: kind knows no context.
func until(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return withOutput(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Gateways returns the addresses of the container runtime's host in the network of the nodes,
// IPv4 first. If the runtime runs in a virtual machine, they are addresses of that machine.
func (c *Cluster) Gateways(ctx context.Context) ([]netip.Addr, error) {
	var found []netip.Addr
	err := until(ctx, func() error {
		nodes, err := c.provider.ListInternalNodes(c.name)
		if err != nil || len(nodes) == 0 {
			return errors.Join(err, ErrNoCluster)
		}
		for _, family := range []string{"-4", "-6"} {
			lines, err := kindexec.OutputLines(nodes[0].Command("ip", family, "route", "show", "default"))
			if err != nil {
				return err
			}
			found = append(found, gateways(lines)...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find gateway of kind cluster %s: %w", c.name, err)
	}
	return found, nil
}

// gateways returns the gateways of routes, as `ip route` prints them: default via 172.18.0.1 dev eth0.
func gateways(routes []string) []netip.Addr {
	var found []netip.Addr
	for _, route := range routes {
		if words := strings.Fields(route); len(words) > 2 && words[1] == "via" {
			if address, err := netip.ParseAddr(words[2]); err == nil {
				found = append(found, address)
			}
		}
	}
	return found
}
