package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// profileName is the name of the file with the profile of all servers, in the folder of the data.
const profileName = "profile.txt"

// collector runs the catalogue and reads the data of the servers.
type collector struct {
	command, version string // of admissiontest, and of Kubernetes
	data             string // an absolute path: the folder for the data
	out              io.Writer
}

// collect runs the whole catalogue on servers with coverage, and writes one profile for all
// servers. If scenarios fail, it still writes the profile, and returns an error.
func (c collector) collect(ctx context.Context, assets string) error {
	counters := filepath.Join(c.data, "servers")
	if err := errors.Join(os.RemoveAll(c.data), os.MkdirAll(counters, 0o755)); err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	failed := c.catalogue(ctx, assets, counters)
	if ctx.Err() != nil {
		return failed
	}
	files, err := filepath.Glob(filepath.Join(counters, "covcounters.*"))
	if err != nil || len(files) == 0 {
		return errors.Join(failed, err, fmt.Errorf("no server wrote to %s when it ended: is the kube-apiserver of %s built with coverage?", counters, assets))
	}
	_, _ = fmt.Fprintf(c.out, "%d servers wrote their coverage\n", len(files))
	text := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+filepath.Join(c.data, profileName))
	text.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off") // without flags for this module, such as -modfile
	if said, err := text.CombinedOutput(); err != nil {
		return errors.Join(failed, fmt.Errorf("convert the data of %s: %w: %s", counters, err, said))
	}
	return failed
}

// catalogue runs the catalogue with the command.
func (c collector) catalogue(ctx context.Context, assets string, counters string) error {
	command := exec.CommandContext(ctx, c.command, "run", "--k8s-version", c.version)
	command.Stdout, command.Stderr = c.out, c.out
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "GOCOVERDIR="+counters)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	if err := command.Run(); err != nil {
		return fmt.Errorf("run the catalogue: %w", err)
	}
	return nil
}
