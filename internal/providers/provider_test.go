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
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/scenarios"
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

// Where scenarios expect calls of plugins, a kube-apiserver that does not record them is not used, unless the user named it or
// wants no build.
func TestEnvtestObserving(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", "")
	found := binaries.Assets{Dir: "/found", Version: binaries.DefaultVersion}
	for name, test := range map[string]struct {
		source   string
		observes bool
		noBuild  bool
		err      error
	}{
		"downloaded":         {source: binaries.SourceDownloaded, err: binaries.ErrNoToolchain},
		"setup-envtest":      {source: binaries.SourceSetupEnvtest, err: binaries.ErrNoToolchain},
		"no build":           {source: binaries.SourceDownloaded, noBuild: true},
		"named":              {source: binaries.SourceDir},
		"KUBEBUILDER_ASSETS": {source: binaries.SourceEnvironment},
		"built":              {source: binaries.SourceCache, observes: true},
	} {
		t.Run(name, func(t *testing.T) {
			found.Source, found.ObservesPlugins = test.source, test.observes
			var said strings.Builder
			from := NewEnvtest(EnvtestOptions{Assets: binaries.Options{Version: "1.36", NoBuild: test.noBuild}, Progress: func(line string) { said.WriteString(line) }})
			got, err := from.observing(t.Context(), found)
			if !errors.Is(err, test.err) || err == nil && got.Dir != found.Dir {
				t.Errorf("got %v, %v; want %v", got, err, test.err)
			}
			if why := strings.Contains(said.String(), "records the calls of its admission plugins"); why != (test.err != nil) {
				t.Errorf("the progress is %q", said.String())
			}
		})
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

// The role of the engine in docs/rbac.yaml has the rights that every run needs. Without its last two roles, no right makes the
// account an administrator. (TestHarm of package e2e runs the catalogue with it.)
func TestManifest(t *testing.T) {
	missing := apiserver.RunRights()
	for text := range strings.SplitSeq(docs.RBAC, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(text), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			checkRule(t, role.Name, rule)
			missing = slices.DeleteFunc(missing, func(right apiserver.Right) bool {
				resource := strings.TrimSuffix(right.Resource+"/"+right.Subresource, "/")
				return role.Name == "admissiontest-engine" && slices.Contains(rule.Verbs, right.Verb) && slices.Contains(rule.APIGroups, right.Group) && slices.Contains(rule.Resources, resource)
			})
		}
	}
	if len(missing) > 0 {
		t.Errorf("the role of the engine lacks %v", missing)
	}
}

// checkRule fails if a rule is wider than its role allows.
func checkRule(t *testing.T, role string, rule rbacv1.PolicyRule) {
	t.Helper()
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
	}
	impersonates := has(rule.Verbs, "impersonate")
	if has(rule.Verbs, "*", "escalate", "bind") || has(rule.Resources, "*") || impersonates && len(rule.ResourceNames) == 0 {
		t.Errorf("%s: %v", role, rule)
	}
	administrator := has(rule.Resources, "nodes/proxy", "serviceaccounts/token") || has(rule.Resources, "secrets") && has(rule.Verbs, "get", "list") || impersonates && has(rule.ResourceNames, "system:masters")
	if administrator && role != "admissiontest-as-administrator" || role == "admissiontest-engine" && (impersonates || has(rule.Resources, "secrets")) {
		t.Errorf("%s: %v", role, rule)
	}
}

var _ target.Provider = Kind{}

func TestCandidates(t *testing.T) {
	list := candidates()
	if len(list) == 0 || !list[0].IsLoopback() || len(list) > maxCandidates || len(slices.Compact(slices.SortedFunc(slices.Values(list), netip.Addr.Compare))) != len(list) {
		t.Errorf("candidates = %v; want loopback first, at most %d, and none twice", list, maxCandidates)
	}
}

func TestTransportErrors(t *testing.T) {
	c := connection{Options: apiserver.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}}}
	c.transport.Mode = "other"
	if _, err := c.open(t.Context()); err == nil || !strings.Contains(err.Error(), "want auto, url, service") {
		t.Errorf("open = %v; want a list of the modes", err)
	}
	c.transport.Mode = framework.TransportService
	if _, err := c.open(t.Context()); !errors.Is(err, ErrImageNeeded) || !strings.Contains(err.Error(), "admissiontest image") {
		t.Errorf("open = %v; want ErrImageNeeded that says how to create one", err)
	}
	c.transport.Mode = framework.TransportURL
	if _, err := c.open(t.Context()); !errors.Is(err, framework.ErrNoResponse) || errors.Is(err, ErrWebhookUnreachable) {
		t.Errorf("open = %v; want ErrNoResponse, not ErrWebhookUnreachable", err)
	}
}

// kindCluster creates a cluster for a test, or skips the test.
func kindCluster(t *testing.T) *kind.Cluster {
	t.Helper()
	if os.Getenv("ADMISSIONTEST_KIND") == "" {
		t.Skip("needs a container runtime: make test-kind")
	}
	c, err := kind.Create(t.Context(), kind.Options{NodeImage: os.Getenv("NODE_IMAGE"), Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestKindTransports(t *testing.T) {
	c := kindCluster(t)
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if found := LocalKind(t.Context(), config); found == nil || found.Name() != c.Name() {
		t.Errorf("LocalKind = %v; want the cluster", found)
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	few, err := engine.Select(all, []string{"wire.*", "timeout.*", "vap.params-by-name", "map.params", "subresource.finalize*"}, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{TransportAuto: framework.TransportURL, framework.TransportURL: framework.TransportURL, framework.TransportService: framework.TransportService} {
		t.Run(mode, func(t *testing.T) {
			r, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: RESTConfig{Config: config, Transport: Transport{Mode: mode}, Progress: func(line string) { t.Log(line) }}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Target.Transport != want {
				t.Errorf("target = %+v; want it by %s", r.Target, want)
			}
			for _, outcome := range r.Outcomes { // lane B is unsupported on a cluster that outlives the run
				if outcome.Verdict != framework.Pass && outcome.Verdict != framework.Unsupported {
					t.Errorf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason)
				}
			}
			if passed := r.Summary.Pass; passed < 10 {
				t.Errorf("%d of %d scenarios passed; want at least 10", passed, len(few))
			}
			left, err := apiserver.Cleanup(t.Context(), config, apiserver.CleanupOptions{})
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A cluster that the provider creates ends with the target.
func TestKindEndsWithTarget(t *testing.T) {
	if os.Getenv("ADMISSIONTEST_KIND") == "" {
		t.Skip("needs a container runtime: make test-kind")
	}
	from := Kind{
		Cluster:  kind.Options{Name: "admissiontest-ends", NodeImage: os.Getenv("NODE_IMAGE")},
		Progress: func(line string) { t.Log(line) },
	}
	opened, err := from.Start(t.Context(), target.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := kind.Use(t.Context(), "admissiontest-ends"); !errors.Is(err, kind.ErrNoCluster) {
		t.Errorf("Use afterwards = %v; want ErrNoCluster", err)
	}
	if info := report.New(opened.Info()).Target; info.Transport != framework.TransportURL {
		t.Errorf("transport = %q", info.Transport)
	}
}
