package kind

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"
)

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

// detect returns the first runtime that responds: kind itself would wait for one that does not. The error is an ErrNoRuntime.
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
		if err := one.run(ctx, "ps", "-q"); err != nil {
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

// run runs a command of the runtime.
func (c containers) run(ctx context.Context, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, c.binary, arguments...)
	command.WaitDelay = time.Second
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		reason := strings.TrimSpace(stderr.String())
		if ctx.Err() != nil {
			reason = fmt.Sprintf("no response within %s", commandLimit)
		}
		return fmt.Errorf("%s %s: %w: %s", c.binary, strings.Join(arguments, " "), err, reason)
	}
	return nil
}
