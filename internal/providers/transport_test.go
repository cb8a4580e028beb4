package providers

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/scenarios"
)

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
