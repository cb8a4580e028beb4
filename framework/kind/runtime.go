package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"
)

// ErrNoRuntime means: no container runtime that kind supports responds on this machine.
var ErrNoRuntime = errors.New("no container runtime that kind can use")

// commandLimit is the limit for a command of a container runtime.
const commandLimit = 20 * time.Second

// containers is a container runtime.
type containers struct {
	// name is kind's name of the runtime, binary its command.
	name, binary string
	option       kindcluster.ProviderOption
}

// known returns the runtimes, in the order in which kind prefers them.
func known() []containers {
	return []containers{
		{"docker", "docker", kindcluster.ProviderWithDocker()},
		{"nerdctl", "nerdctl", kindcluster.ProviderWithNerdctl("nerdctl")},
		{"nerdctl", "finch", kindcluster.ProviderWithNerdctl("finch")},
		{"podman", "podman", kindcluster.ProviderWithPodman()},
	}
}

// detect returns the first runtime that responds. The error is an ErrNoRuntime.
func detect(ctx context.Context) (containers, error) {
	chosen := os.Getenv("KIND_EXPERIMENTAL_PROVIDER")
	var why []string
	for _, one := range known() {
		if chosen != "" && chosen != one.name && chosen != one.binary {
			continue
		}
		if _, err := exec.LookPath(one.binary); err != nil {
			continue
		}
		if _, err := one.run(ctx, "ps", "-q"); err != nil {
			why = append(why, err.Error())
			continue
		}
		return one, nil
	}
	if ctx.Err() != nil {
		return containers{}, ctx.Err()
	}
	if chosen != "" {
		why = append(why, "KIND_EXPERIMENTAL_PROVIDER is "+chosen)
	}
	if len(why) == 0 {
		why = append(why, "no docker, nerdctl or podman in PATH")
	}
	return containers{}, fmt.Errorf("find container runtime: %w: %s; install and start Docker, Podman or nerdctl, or use --target envtest, which needs none",
		ErrNoRuntime, strings.Join(why, "; "))
}

// run runs a command of the runtime and returns its standard output.
func (c containers) run(ctx context.Context, arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, c.binary, arguments...)
	command.WaitDelay = time.Second
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		reason := strings.TrimSpace(stderr.String())
		if ctx.Err() != nil {
			reason = fmt.Sprintf("no response within %s", commandLimit)
		}
		return nil, fmt.Errorf("%s %s: %w: %s", c.binary, strings.Join(arguments, " "), err, reason)
	}
	return out, nil
}

// network returns the name of the network of kind's nodes.
func (c containers) network() string {
	name := "KIND_EXPERIMENTAL_DOCKER_NETWORK"
	if c.name == "podman" {
		name = "KIND_EXPERIMENTAL_PODMAN_NETWORK"
	}
	if set := os.Getenv(name); set != "" {
		return set
	}
	return "kind"
}

// gateways returns the addresses of the runtime's host in the nodes' network,
// IPv4 first.
func (c containers) gateways(ctx context.Context) ([]netip.Addr, error) {
	out, err := c.run(ctx, "network", "inspect", c.network())
	if err != nil {
		return nil, err
	}
	return parseGateways(out)
}

// parseGateways parses the output of network inspect, in the form of Docker and nerdctl, or of
// Podman.
func parseGateways(printed []byte) ([]netip.Addr, error) {
	var networks []struct {
		IPAM struct{ Config []struct{ Gateway string } }
		// Podman:
		Subnets []struct{ Gateway string } `json:"subnets"`
	}
	if err := json.Unmarshal(printed, &networks); err != nil {
		return nil, fmt.Errorf("read network of kind: %w; want a JSON list", err)
	}
	var v4, v6 []netip.Addr
	add := func(text string) {
		address, err := netip.ParseAddr(strings.Split(text, "/")[0])
		switch {
		case err != nil:
		case address.Is4():
			v4 = append(v4, address)
		default:
			v6 = append(v6, address)
		}
	}
	for _, network := range networks {
		for _, config := range network.IPAM.Config {
			add(config.Gateway)
		}
		for _, subnet := range network.Subnets {
			add(subnet.Gateway)
		}
	}
	return append(v4, v6...), nil
}
