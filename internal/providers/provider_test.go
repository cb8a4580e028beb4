package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The providers are the engine's.
var (
	_ target.Provider = (*Envtest)(nil)
	_ target.Provider = RESTConfig{}
	_ target.Provider = Kubeconfig{}
	_ target.Provider = Kind{}
)

// kubeconfig writes a kubeconfig for an address and returns its path.
func kubeconfig(t *testing.T, address string) string {
	t.Helper()
	return file(t, fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c}}, {name: there, context: {cluster: none}}]
clusters: [{name: c, cluster: {server: %q}}]
`, address))
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestKubeconfigRefuses(t *testing.T) {
	good := kubeconfig(t, "https://127.0.0.1:1")
	tests := map[string]struct {
		from Kubeconfig
		says []string
	}{
		"missing":           {Kubeconfig{Path: "nowhere/config"}, []string{"nowhere/config", "does not exist", "--kubeconfig FILE"}},
		"a folder":          {Kubeconfig{Path: filepath.Dir(good)}, []string{"is not a regular file"}},
		"no YAML":           {Kubeconfig{Path: file(t, "a: [b")}, []string{"malformed", "line 1"}},
		"no mapping":        {Kubeconfig{Path: file(t, "hello")}, []string{"malformed", "want a YAML or JSON mapping"}},
		"empty":             {Kubeconfig{Path: file(t, "")}, []string{"no current-context"}},
		"misspelt context":  {Kubeconfig{Path: good, Context: "ther"}, []string{"cannot locate context ther", "context ther"}},
		"no cluster":        {Kubeconfig{Path: good, Context: "there"}, []string{"none"}},
		"no such key":       {Kubeconfig{Path: file(t, "current-context: x")}, []string{"cannot locate context x"}},
		"wrong type inside": {Kubeconfig{Path: file(t, "contexts: 3")}, []string{"contexts"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.from.Config()
			if !errors.Is(err, ErrKubeconfig) {
				t.Fatalf("Config = %v; want ErrKubeconfig", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "struct {") {
				t.Errorf("error shows Go types: %v", err)
			}
			if _, started := test.from.Start(t.Context(), target.StartOptions{}); !errors.Is(started, ErrKubeconfig) {
				t.Errorf("Start = %v; want ErrKubeconfig", started)
			}
		})
	}
}

func TestKubeconfigUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the superuser reads every file")
	}
	name := kubeconfig(t, "https://127.0.0.1:1")
	if err := os.Chmod(name, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := (Kubeconfig{Path: name}).Config(); !errors.Is(err, ErrKubeconfig) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("Config = %v; want ErrKubeconfig and ErrPermission", err)
	}
}

// In a pod, the ServiceAccount is used if there is no kubeconfig. Its files are in the pod. This machine does
// not have them.
func TestKubeconfigInCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := Kubeconfig{}.Config()
	if !errors.Is(err, ErrKubeconfig) || !strings.Contains(err.Error(), "read the ServiceAccount of this pod: ") || !strings.Contains(err.Error(), "serviceaccount/token") {
		t.Errorf("Config = %v; want an error about the token", err)
	}
	if _, err := (Kubeconfig{Path: filepath.Join(t.TempDir(), "none")}).Config(); err == nil || strings.Contains(err.Error(), "ServiceAccount") {
		t.Errorf("with a path: %v", err)
	}
	t.Setenv("KUBECONFIG", kubeconfig(t, "https://example.com:6443"))
	if config, err := (Kubeconfig{}).Config(); err != nil || config.Host != "https://example.com:6443" {
		t.Errorf("with a kubeconfig: %v, %v", config, err)
	}
}

func TestDeadServers(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	_ = listener.Close()
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	defer stranger.Close()

	for address, says := range map[string]string{
		silent.URL:   "no response within 200ms",
		closed:       "connection refused",
		stranger.URL: "certificate",
	} {
		t.Run(says, func(t *testing.T) {
			from := Kubeconfig{Path: kubeconfig(t, address), firstResponse: time.Hour} // the others are reported at once
			if address == silent.URL {
				from.firstResponse = 200 * time.Millisecond
			}
			_, err := from.Start(t.Context(), target.StartOptions{})
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), from.Path) || !strings.Contains(err.Error(), address) {
				t.Errorf("Start at %s = %v; want ErrUnreachable that says %q, the address and the file", address, err, says)
			}
		})
	}
	if FirstResponse > 14*time.Second {
		t.Errorf("FirstResponse is %s; the package promises a report within 15s", FirstResponse)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = RESTConfig{Config: &rest.Config{Host: silent.URL}}.Start(ctx, target.StartOptions{})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("Start after cancel = %v; want only context.Canceled", err)
	}
}

func TestProfilesAreOnlyForEnvtest(t *testing.T) {
	for _, from := range []target.Provider{Kubeconfig{Path: "none"}, RESTConfig{}, Kind{}} {
		t.Run(fmt.Sprintf("%T", from), func(t *testing.T) {
			if _, err := from.Start(t.Context(), target.StartOptions{Profile: &scenario.Server{}}); !errors.Is(err, target.ErrNoProfiles) {
				t.Errorf("Start of %T = %v; want ErrNoProfiles", from, err)
			}
		})
	}
	if _, err := (RESTConfig{}).Start(t.Context(), target.StartOptions{}); err == nil {
		t.Error("Start without a Config succeeds")
	}
}

func TestEnvtestWithoutAssets(t *testing.T) {
	var lines []string
	from := NewEnvtest(EnvtestOptions{
		Assets:   binaries.Options{Dir: t.TempDir()},
		Progress: func(line string) { lines = append(lines, line) },
	})
	for range 2 { // the error is not kept
		if _, err := from.Start(t.Context(), target.StartOptions{}); !errors.Is(err, binaries.ErrDamaged) {
			t.Errorf("Start = %v; want ErrDamaged", err)
		}
		if version, err := from.Version(t.Context()); !errors.Is(err, binaries.ErrDamaged) {
			t.Errorf("Version = %s, %v; want ErrDamaged", version, err)
		}
	}
}

// Version asks the binaries.
func TestEnvtestVersion(t *testing.T) {
	dir := t.TempDir()
	for name, says := range map[string]string{"kube-apiserver": "Kubernetes v1.35.4", "etcd": "etcd Version: 3.6.8"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+says+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	version, err := NewEnvtest(EnvtestOptions{Assets: binaries.Options{Dir: dir}}).Version(t.Context())
	if err != nil || version != "v1.35.4" {
		t.Errorf("Version = %s, %v", version, err)
	}
}
