package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// profileName is the name of the file with the profile of all servers, in the folder of the data.
const profileName = "profile.txt"

// collector runs the catalogue and reads the data of the servers.
type collector struct {
	command string // path of the admissiontest binary
	data    string // an absolute path: the folder for the data
	out     io.Writer
}

// collect runs the whole catalogue on servers with coverage, and writes one profile for all
// servers. If scenarios fail, it still writes the profile, and returns an error.
func (c collector) collect(ctx context.Context, found binaries.Assets) error {
	counters := filepath.Join(c.data, "servers")
	if err := errors.Join(os.RemoveAll(c.data), os.MkdirAll(counters, 0o755)); err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	failed := c.catalogue(ctx, found, counters)
	if ctx.Err() != nil {
		return failed
	}
	files, err := filepath.Glob(filepath.Join(counters, "covcounters.*"))
	if err != nil || len(files) == 0 {
		return errors.Join(failed, err, fmt.Errorf("no server wrote to %s when it ended: is %s built with coverage?", counters, found.KubeAPIServer()))
	}
	_, _ = fmt.Fprintf(c.out, "%d servers wrote their coverage\n", len(files))
	text := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+filepath.Join(c.data, profileName))
	text.Env = plainEnvironment()
	if said, err := text.CombinedOutput(); err != nil {
		return errors.Join(failed, fmt.Errorf("convert the data of %s: %w: %s", counters, err, said))
	}
	return failed
}

// catalogue runs the catalogue with the command.
func (c collector) catalogue(ctx context.Context, found binaries.Assets, counters string) error {
	command := exec.CommandContext(ctx, c.command, "run", "--k8s-version", found.Version)
	command.Stdout, command.Stderr = c.out, c.out
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+found.Dir, "GOCOVERDIR="+counters)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	if err := command.Run(); err != nil {
		return fmt.Errorf("run the catalogue: %w", err)
	}
	return nil
}

// plainEnvironment returns the environment of this process without go flags for this module, such
// as -modfile.
func plainEnvironment() []string { return append(os.Environ(), "GOFLAGS=", "GOWORK=off") }

// library has the sources of Kubernetes' modules in the module cache.
type library struct {
	folders map[string]string // by the path of the module
	parsed  map[string]source // by the name in the profile
}

// newLibrary finds the modules of a version of Kubernetes, and downloads them if they are missing.
func newLibrary(ctx context.Context, version string) (*library, error) {
	l := &library{folders: map[string]string{}, parsed: map[string]source{}}
	for path, version := range map[string]string{
		"k8s.io/kubernetes": "v" + version,
		"k8s.io/apiserver":  "v0." + strings.TrimPrefix(version, "1."),
		podSecurity:         "v0." + strings.TrimPrefix(version, "1."),
	} {
		download := exec.CommandContext(ctx, "go", "mod", "download", "-json", path+"@"+version)
		download.Dir, download.Env = os.TempDir(), plainEnvironment()
		var said bytes.Buffer
		download.Stderr = &said
		text, err := download.Output()
		var got struct{ Dir, Error string }
		if wrong := json.Unmarshal(text, &got); wrong != nil || err != nil || got.Dir == "" {
			return nil, fmt.Errorf("find the sources of %s %s: %w: %s%s", path, version, errors.Join(err, wrong), got.Error, said.String())
		}
		l.folders[path] = got.Dir
	}
	return l, nil
}

// source returns a file by its name in the profile.
func (l *library) source(file string) (source, error) {
	if s, known := l.parsed[file]; known {
		return s, nil
	}
	for module, folder := range l.folders {
		rest, below := strings.CutPrefix(file, module+"/")
		if !below {
			continue
		}
		path := filepath.Join(folder, filepath.FromSlash(rest))
		text, err := os.ReadFile(path)
		if err != nil {
			return source{}, err
		}
		s, err := parseSource(path, text)
		if err == nil {
			l.parsed[file] = s
		}
		return s, err
	}
	return source{}, fmt.Errorf("%s is in no module that is measured", file)
}
