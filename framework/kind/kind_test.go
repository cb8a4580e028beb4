package kind

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func TestNoRuntime(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, try := range map[string]func() error{
		"Create":      func() error { _, err := Create(t.Context(), Options{}); return err },
		"Use":         func() error { _, err := Use(t.Context(), "any"); return err },
		"RunClusters": func() error { _, err := RunClusters(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := try()
			if !errors.Is(err, ErrNoRuntime) || !strings.Contains(err.Error(), "install and start Docker, Podman or nerdctl") {
				t.Errorf("%s = %v; want ErrNoRuntime with what to do", name, err)
			}
		})
	}
}

// If a runtime is installed but fails, the error has its message. KIND_EXPERIMENTAL_PROVIDER chooses another one.
func TestDeadRuntime(t *testing.T) {
	dir := t.TempDir()
	docker := "#!/bin/sh\n[ \"$1\" = -v ] && echo Docker version 1 && exit\necho 'is the docker daemon running?' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for chosen, want := range map[string]string{"": "is the docker daemon running?", "nerdctl": "nerdctl"} {
		t.Run(chosen, func(t *testing.T) {
			t.Setenv("KIND_EXPERIMENTAL_PROVIDER", chosen)
			if _, err := Use(t.Context(), "any"); !errors.Is(err, ErrNoRuntime) || !strings.Contains(err.Error(), want) {
				t.Errorf("Use = %v; want ErrNoRuntime and %s", err, want)
			}
		})
	}
}

func TestLoggerIsPlain(t *testing.T) {
	var lines []string
	l := logger{func(line string) { lines = append(lines, line) }}
	l.V(0).Infof(" • %s  ...\n", "Preparing nodes")
	l.V(0).Info(" ✓ Preparing nodes")
	l.V(1).Info("for debugging")
	l.Warnf("cgroup %s", "v1")
	l.Error("broken")
	want := []string{"kind: • Preparing nodes  ...", "kind: warning: cgroup v1", "kind: error: broken"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// real skips the test unless make test-kind runs it, and returns the options of a cluster.
func real(t *testing.T) Options {
	t.Helper()
	if os.Getenv("ADMISSIONTEST_KIND") == "" {
		t.Skip("needs a container runtime: make test-kind")
	}
	return Options{NodeImage: os.Getenv("NODE_IMAGE"), Progress: func(line string) { t.Log(line) }}
}

func TestKindCancelledCreationLeavesNothing(t *testing.T) {
	options := real(t)
	options.Name = "admissiontest-cancelled"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := options.Progress
	options.Progress = func(line string) {
		log(line)
		if strings.Contains(line, "Starting control-plane") {
			cancel()
		}
	}
	began := time.Now()
	_, err := Create(ctx, options)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Create = %v; want context.Canceled", err)
	}
	if _, err := Use(t.Context(), options.Name); !errors.Is(err, ErrNoCluster) {
		t.Errorf("Use afterwards = %v; want ErrNoCluster", err)
	}
	t.Logf("ended after %s", time.Since(began))
}

func TestKindFailedCreationLeavesNothing(t *testing.T) {
	options := real(t)
	options.Name, options.NodeImage = "admissiontest-failed", "localhost:1/none/such:v1"
	if _, err := Create(t.Context(), options); err == nil || !strings.Contains(err.Error(), "localhost:1") {
		t.Errorf("Create = %v; want the image in it", err)
	}
	if _, err := Use(t.Context(), options.Name); !errors.Is(err, ErrNoCluster) {
		t.Errorf("Use afterwards = %v; want ErrNoCluster", err)
	}
}

func TestKindCluster(t *testing.T) {
	options := real(t)
	home := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(home, "config"))
	c, err := Create(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := Use(context.WithoutCancel(t.Context()), c.Name()); !errors.Is(err, ErrNoCluster) {
			t.Errorf("Use after Delete = %v; want ErrNoCluster", err)
		}
	})
	if _, err := os.Stat(filepath.Join(home, "config")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the user's kubeconfig: %v; want ErrNotExist", err)
	}
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Of(t.Context(), "kind://docker/"+c.Name()+"/"+c.Name()+"-control-plane", config)
	if err != nil || found.Name() != c.Name() {
		t.Errorf("Of = %v, %v; want the cluster", found, err)
	}
	if _, err := Of(t.Context(), "kind://docker/"+c.Name()+"/any", &rest.Config{}); !errors.Is(err, ErrNoCluster) {
		t.Errorf("Of with another authority = %v; want ErrNoCluster", err)
	}
	if err := found.LoadImage(t.Context(), filepath.Join(home, "none.tar")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("LoadImage of no file = %v; want ErrNotExist", err)
	}
	if _, err := exec.LookPath("docker"); err == nil && found.Kubeconfig() == "" {
		t.Error("Kubeconfig is empty")
	}
}
