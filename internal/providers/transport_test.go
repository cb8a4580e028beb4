package providers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/scenarios"
)

var _ target.Provider = Kind{}

func TestParseHookAddress(t *testing.T) {
	for text, want := range map[string][2]string{
		"10.0.0.1": {"10.0.0.1", "0"}, "10.0.0.1:8443": {"10.0.0.1", "8443"}, "runner.example.com:1": {"runner.example.com", "1"},
		"::1": {"::1", "0"}, "[::1]": {"::1", "0"}, "[::1]:443": {"::1", "443"},
	} {
		t.Run(text, func(t *testing.T) {
			if host, port, err := parseHookAddress(text); err != nil || host != want[0] || port != want[1] {
				t.Errorf("parseHookAddress(%q) = %q, %q, %v; want %q", text, host, port, err, want)
			}
		})
	}
	for _, text := range []string{"", ":1", "h:", "h:0", "h:65536", "h:x", "https://h", "a b", "0.0.0.0", "[::]:1", "h:1:2"} {
		t.Run(text, func(t *testing.T) {
			if host, port, err := parseHookAddress(text); err == nil {
				t.Errorf("parseHookAddress(%q) = %q, %q; want an error", text, host, port)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	c := connection{Options: apiserver.Options{Config: &rest.Config{Host: "https://192.0.2.1:6443"}, Progress: func(string) {}}}
	list, err := c.candidates(t.Context())
	if err != nil || len(list) == 0 || list[0] != at(netip.MustParseAddr("127.0.0.1"), "loopback") || len(list) > maxCandidates {
		t.Fatalf("candidates = %v, %v; want loopback first, and at most %d", list, err, maxCandidates)
	}
	listens := map[string]bool{}
	for _, one := range list {
		if listens[one.listen] {
			t.Errorf("%s is there twice", one)
		}
		listens[one.listen] = true
	}
	for address, want := range map[string]string{"127.0.0.1:81": "127.0.0.1:81", "192.0.2.77:81": "0.0.0.0:81", "2001:db8::1": "[::]:0"} {
		t.Run(address, func(t *testing.T) {
			c.transport.HookAddress = address
			if list, err := c.candidates(t.Context()); err != nil || len(list) != 1 || list[0].listen != want {
				t.Errorf("candidates for %s = %v, %v; want to listen on %s", address, list, err, want)
			}
		})
	}
	c.transport.HookAddress = "h:x"
	if _, err := c.candidates(t.Context()); err == nil {
		t.Error("a malformed address gives no error")
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
	c, err := kind.Create(t.Context(), kind.Options{NodeImage: os.Getenv("NODE_IMAGE"), Config: os.Getenv("KIND_CONFIG"), Progress: func(line string) { t.Log(line) }})
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

// unreached replaces the URLs of webhooks by one that nothing listens at, until a
// Deployment is created.
type unreached struct {
	http.RoundTripper
	over atomic.Bool
}

var urls = regexp.MustCompile(`"url":"https://[^/"]+`)

func (u *unreached) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(request.URL.Path, "/deployments"):
		u.over.Store(true)
	case request.Body != nil && !u.over.Load() && strings.Contains(request.URL.Path, "webhookconfigurations"):
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		body = urls.ReplaceAll(body, []byte(`"url":"https://127.0.0.1:1`))
		request = request.Clone(request.Context())
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return u.RoundTripper.RoundTrip(request)
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
			r, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: Kind{Use: c.Name(), Transport: Transport{Mode: mode}, Progress: func(line string) { t.Log(line) }}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Target.Kind != framework.TargetKind || r.Target.Transport != want {
				t.Errorf("target = %+v; want kind, by %s", r.Target, want)
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
	t.Run("unreachable", func(t *testing.T) {
		limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the end of the context is another error
		defer cancel()
		_, err := RESTConfig{Config: config, Transport: Transport{HookAddress: "127.0.0.1"}}.Start(limited, target.StartOptions{})
		if !errors.Is(err, ErrWebhookUnreachable) || !strings.Contains(err.Error(), "--transport service") {
			t.Errorf("Start = %v; want ErrWebhookUnreachable that says what to do", err)
		}
		if left, err := apiserver.Cleanup(t.Context(), config, apiserver.CleanupOptions{}); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("url again", func(t *testing.T) {
		late := rest.CopyConfig(config)
		blocked := &unreached{}
		late.Wrap(func(inner http.RoundTripper) http.RoundTripper { blocked.RoundTripper = inner; return blocked })
		var progress []string
		opened, err := RESTConfig{Config: late, Transport: Transport{HookImage: "registry.invalid/none:1"}, Progress: func(line string) { progress = append(progress, line) }}.Start(t.Context(), target.StartOptions{})
		if err != nil {
			t.Fatalf("Start = %v; progress %q", err, progress)
		}
		if got := opened.Info().Transport; got != framework.TransportURL {
			t.Errorf("transport = %q; want url", got)
		}
		if text := strings.Join(progress, "\n"); !strings.Contains(text, "trying url again: ") || !strings.Contains(text, "cannot start image registry.invalid/none:1: ") {
			t.Errorf("progress %q; want why it is url", progress)
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if left, err := apiserver.Cleanup(t.Context(), config, apiserver.CleanupOptions{}); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("CanCall", func(t *testing.T) {
		var servers []*hook.Server
		gateways, err := c.Gateways(t.Context())
		if err != nil || len(gateways) == 0 {
			t.Fatalf("Gateways = %v, %v", gateways, err)
		}
		for _, address := range []string{"127.0.0.1:0", gateways[0].String() + ":0"} {
			server, err := hook.Start(t.Context(), hook.Options{Address: address})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			servers = append(servers, server)
		}
		reached, err := apiserver.CanCall(t.Context(), apiserver.Options{Config: config}, servers, probeLimit)
		if err != nil || !slices.Equal(reached, []bool{false, true}) {
			t.Errorf("CanCall = %v, %v; want the gateway only", reached, err)
		}
	})
}

// A cluster that the provider creates ends with the target.
func TestKindEndsWithTarget(t *testing.T) {
	if os.Getenv("ADMISSIONTEST_KIND") == "" {
		t.Skip("needs a container runtime: make test-kind")
	}
	from := Kind{
		Cluster:  kind.Options{Name: kind.Prefix + "ends", NodeImage: os.Getenv("NODE_IMAGE"), Config: os.Getenv("KIND_CONFIG")},
		Progress: func(line string) { t.Log(line) },
	}
	opened, err := from.Start(t.Context(), target.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := kind.Use(t.Context(), kind.Prefix+"ends"); !errors.Is(err, kind.ErrNoCluster) {
		t.Errorf("Use afterwards = %v; want ErrNoCluster", err)
	}
	if info := report.New(opened.Info()).Target; info.Transport != framework.TransportURL {
		t.Errorf("transport = %q", info.Transport)
	}
}
