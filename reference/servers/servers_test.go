package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/report"
)

// reportsIn is an environment variable: the folder in which TestServers leaves a report of each API server.
const reportsIn = "ADMISSIONTEST_SERVERS"

// The whole catalogue on each API server of docs/servers.md, as `make servers` runs it. Whatever the verdicts are, the
// page has them; the test fails if there is no report, or nothing passed.
func TestServers(t *testing.T) {
	reports := os.Getenv(reportsIn)
	if reports == "" {
		t.Skip(reportsIn + " is not set: make servers sets it")
	}
	for _, version := range []string{"1.37.2", "1.36.3", "1.35.4", "1.34.4"} {
		t.Run("kube-apiserver-"+version, func(t *testing.T) {
			catalogue(t, reports, "kube-apiserver", version, []string{"KUBEBUILDER_ASSETS="}, "--k8s-version", version)
		})
	}
	t.Run("kube-apiserver-with-kine", func(t *testing.T) {
		assets := withKine(t)
		catalogue(t, reports, "kube-apiserver with kine", assets.Version, []string{"KUBEBUILDER_ASSETS=" + assets.Dir})
	})
	t.Run("generic-control-plane", func(t *testing.T) {
		assets := generic(t)
		server, err := envtest.Start(t.Context(), envtest.Options{BinaryAssetsDirectory: assets.Dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		// It is not started with other flags, many of which it does not have.
		catalogue(t, reports, "generic control plane", assets.Version, nil, "--disposable", "--kubeconfig", kubeconfigOf(t, server))
	})
	t.Run("sample-apiserver", func(t *testing.T) {
		server := startAggregated(t)
		catalogue(t, reports, "aggregated sample-apiserver", "0.37.2", nil, "--profile", "aggregated", "--kubeconfig", kubeconfigOf(t, server))
	})
}

func kubeconfigOf(t *testing.T, server *envtest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// catalogue runs the command, which writes a report into the folder that has the name of the test.
func catalogue(t *testing.T, reports, project, version string, env []string, args ...string) {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	program := exec.CommandContext(t.Context(), tool(t, "github.com/admissiontest/admissiontest/cmd/admissiontest"), append([]string{
		"run", "--report", filepath.Join(reports, name), "--implementation", "project=" + project + ",version=" + version,
	}, args...)...)
	program.Env = append(os.Environ(), env...)
	out, err := program.CombinedOutput()
	r, missing := report.Read(filepath.Join(reports, name))
	if missing != nil || r.Summary.Pass == 0 {
		t.Fatalf("run: %v, %v\n%s", err, missing, out)
	}
	t.Logf("%s", out[max(0, len(out)-400):])
}

// withKine returns the programs of the default version, with kine in etcd's stead. It needs a C compiler.
func withKine(t *testing.T) binaries.Assets {
	t.Helper()
	found, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	with := binaries.Assets{Dir: t.TempDir(), Version: found.Version}
	if err := os.Symlink(found.KubeAPIServer(), with.KubeAPIServer()); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "-C", "kine", "build", "-o", with.Etcd(), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kine: %v\n%s", err, out)
	}
	return with
}
