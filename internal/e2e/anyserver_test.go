package e2e

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// admissionPlugins are the plugins that call webhooks and evaluate policies.
const admissionPlugins = "MutatingAdmissionWebhook,ValidatingAdmissionWebhook,MutatingAdmissionPolicy,ValidatingAdmissionPolicy"

// beside starts another API server with the storage of a server.
func beside(t *testing.T, server *envtest.Server, flags map[string]string) *rest.Config {
	t.Helper()
	flags["etcd-servers"] = "unix://" + server.Environment.ControlPlane.Etcd.URL.Path
	other, err := envtest.Start(t.Context(), envtest.Options{Profile: envtest.Profile{Flags: flags}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	return other.Config
}

// someScenarios returns scenarios that need what a filter takes away, and others. The environment variable
// ADMISSIONTEST_ANYSERVER selects others by name, area or pattern, separated by commas: "*" is the catalogue.
func someScenarios(t *testing.T) []scenario.Scenario {
	t.Helper()
	names := []string{"dryrun", "warning", "delete", "exemption"}
	if all := os.Getenv("ADMISSIONTEST_ANYSERVER"); all != "" {
		names = strings.Split(all, ",")
	}
	selected, err := engine.Select(catalogue(t), names, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return selected
}

// lateBy is the delay of configurations, which the environment variable ADMISSIONTEST_LATE replaces.
func lateBy(t *testing.T) time.Duration {
	t.Helper()
	delay, err := time.ParseDuration(cmp.Or(os.Getenv("ADMISSIONTEST_LATE"), "2s"))
	if err != nil {
		t.Fatal(err)
	}
	return delay
}

// A server that lacks something gets the verdicts of a complete one, as far as it can be judged, and nothing is
// left on it.
func TestAnyServer(t *testing.T) {
	server := testserver.OwnServer(t)
	all := someScenarios(t)
	run := func(t *testing.T, config *rest.Config) (map[string]report.Outcome, time.Duration) {
		t.Helper()
		began := time.Now()
		r, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: providers.RESTConfig{Config: config, Progress: func(line string) { t.Log(line) }}})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		t.Logf("%s in %s", r.Summary, time.Since(began).Round(time.Second/10))
		found := map[string]report.Outcome{}
		for _, outcome := range r.Outcomes {
			found[outcome.Name] = outcome
		}
		return found, time.Since(began)
	}
	plain, took := run(t, server.Config)
	each := []filter{withoutWarnings(), withoutLeases(), withoutSelectors(), withoutCollections(), withoutMetrics(), withoutImpersonation(), withoutAdmissionOfConfigMaps()}
	for name, test := range map[string]struct {
		filters []filter
		flags   map[string]string // of the other server
	}{
		"late configurations":     {filters: []filter{lateConfigurations()}, flags: lateFlags(t, server, lateBy(t))},
		"all":                     {filters: each, flags: map[string]string{"disable-admission-plugins": admissionPlugins}},
		"warnings":                {filters: []filter{withoutWarnings()}},
		"Leases":                  {filters: []filter{withoutLeases()}},
		"selectors":               {filters: []filter{withoutSelectors()}},
		"deletecollection":        {filters: []filter{withoutCollections()}},
		"metrics":                 {filters: []filter{withoutMetrics()}},
		"impersonation":           {filters: []filter{withoutImpersonation()}},
		"ignored users":           {filters: []filter{ignoringImpersonation()}},
		"admission of ConfigMaps": {filters: []filter{withoutAdmissionOfConfigMaps()}, flags: map[string]string{"disable-admission-plugins": admissionPlugins}},
	} {
		t.Run(name, func(t *testing.T) {
			var other *rest.Config
			if test.flags != nil {
				other = beside(t, server, test.flags)
			}
			config := filtered(t, server.Config, other, test.filters...)
			found, needed := run(t, config)
			wantSameOrReason(t, plain, found)
			if name != "late configurations" && needed > 4*took { // there, each wait takes as long as the delay
				t.Errorf("it took %s, more than four times %s", needed, took)
			}
			if left := everythingOf(t, server.Config); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// An API server that carries out dry-run requests gets none of them but the first, which is in the namespace of the run.
func TestNoDryRun(t *testing.T) {
	server := testserver.OwnServer(t)
	r, err := engine.Run(t.Context(), engine.Options{Scenarios: someScenarios(t), Provider: providers.RESTConfig{Config: filtered(t, server.Config, nil, withoutDryRun())}})
	if !errors.Is(err, target.ErrNoDryRun) || r.Summary.Error != r.Summary.Total {
		t.Errorf("%v: %v; want target.ErrNoDryRun, and no verdicts", r.Summary, err)
	}
	if left := everythingOf(t, server.Config); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// wantSameOrReason fails for each outcome that is neither the one of a complete server nor one that says why there
// is none.
func wantSameOrReason(t *testing.T, plain, found map[string]report.Outcome) {
	t.Helper()
	judged := 0
	for name, outcome := range found {
		switch outcome.Verdict {
		case plain[name].Verdict:
			judged++
		case framework.Unsupported, framework.Inconclusive:
			t.Logf("%s: %s: %s", name, outcome.Verdict, outcome.Reason)
		default:
			t.Errorf("%s: %s, want %s: %s", name, outcome.Verdict, plain[name].Verdict, outcome.Reason)
		}
	}
	t.Logf("%d of %d as on a complete server", judged, len(plain))
	if judged < len(plain)/5 {
		t.Errorf("%d of %d scenarios were judged; want more: the others need what the server lacks", judged, len(plain))
	}
}

// everythingOf returns every object with the label of a run or with a name of a run.
func everythingOf(t *testing.T, admin *rest.Config) []string {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := discoverer.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, resource := range list.APIResources {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			of := version.WithResource(resource.Name)
			objects, err := client.Resource(of).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range objects.Items {
				if _, labelled := one.GetLabels()[apiserver.RunLabel]; labelled || strings.HasPrefix(one.GetName(), "at-") || strings.HasPrefix(one.GetNamespace(), "at-") || one.GroupVersionKind().Kind == "CustomResourceDefinition" {
					left = append(left, resource.Name+" "+one.GetNamespace()+"/"+one.GetName())
				}
			}
		}
	}
	return left
}
