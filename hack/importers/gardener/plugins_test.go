// Package gardener uses the unit tier as the repository of gardener would: with its own versions of Kubernetes
// and controller-runtime, and nothing patched.
package gardener

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/install"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apiserver/admission/initializer"
	gardeninformers "github.com/gardener/gardener/pkg/client/core/informers/externalversions"
	plugin "github.com/gardener/gardener/plugin/pkg"
	"github.com/gardener/gardener/plugin/pkg/shoot/dnsrewriting"
	"github.com/gardener/gardener/plugin/pkg/shoot/nodelocaldns"
	"github.com/gardener/gardener/plugin/pkg/shoot/resourcereservation"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	. "github.com/admissiontest/admissiontest/framework/matchers"
	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// Adding the unit tier to gardener does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, "github.com/gardener/gardener") }

// gardenScheme has gardener's types, which the plugins get in their internal version.
func gardenScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

func shoot() *core.Shoot {
	return &core.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "a"},
		Spec:       core.ShootSpec{Provider: core.Provider{Workers: []core.Worker{{Name: "worker"}}}},
	}
}

// informers is what a project with its own informers writes once.
func informers(w *fakes.World) []fakes.Injector {
	factory := gardeninformers.NewSharedInformerFactory(nil, 0)
	fakes.Preload(w, factory, &v1beta1.CloudProfile{}, &v1beta1.NamespacedCloudProfile{})
	return []fakes.Injector{fakes.Inject("WantsCoreInformerFactory", func(p initializer.WantsCoreInformerFactory) { p.SetCoreInformerFactory(factory) })}
}

func dnsRewriting() contract.Subject {
	return contract.Subject{
		Name: plugin.PluginNameShootDNSRewriting, Source: harness.FromRegister(plugin.PluginNameShootDNSRewriting, dnsrewriting.Register),
		Scheme: gardenScheme(), World: []fakes.Option{fakes.WithScheme(gardenScheme())},
		Config: "apiVersion: shootdnsrewriting.admission.gardener.cloud/v1alpha1\nkind: Configuration\ncommonSuffixes: [gardener.cloud]\n",
		Allow:  []framework.Request{framework.Create(shoot())},
	}
}

func nodeLocalDNS() contract.Subject {
	return contract.Subject{
		Name: plugin.PluginNameShootNodeLocalDNSEnabledByDefault, Source: harness.FromRegister(plugin.PluginNameShootNodeLocalDNSEnabledByDefault, nodelocaldns.Register),
		Scheme: gardenScheme(), World: []fakes.Option{fakes.WithScheme(gardenScheme())},
		Allow: []framework.Request{framework.Create(shoot())},
	}
}

func resourceReservation() contract.Subject {
	return contract.Subject{
		Name: plugin.PluginNameShootResourceReservation, Source: harness.FromRegister(plugin.PluginNameShootResourceReservation, resourcereservation.Register),
		Scheme: gardenScheme(), World: []fakes.Option{fakes.WithScheme(gardenScheme())}, Inject: informers,
		Allow: []framework.Request{framework.Create(shoot())},
	}
}

// A test of one request, with a configuration.
func TestDNSRewriting(t *testing.T) {
	subject := dnsRewriting()
	h := harness.New(t, subject.Source, harness.WithScheme(subject.Scheme), harness.WithConfig(subject.Config), harness.WithWorld(fakes.NewWorld(t, subject.World...)))
	NewWithT(t).Expect(h.Do(framework.Create(shoot()))).To(SatisfyAll(BeAdmitted(), HaveMutatedOnly("spec.systemComponents")))
}

// The rules of the contract that each plugin breaks: defects of gardener.
func TestContract(t *testing.T) {
	for _, test := range []struct {
		subject contract.Subject
		breaks  []string
	}{
		{dnsRewriting(), []string{"A1", "K2"}},
		{nodeLocalDNS(), nil},
		{resourceReservation(), []string{"K3"}},
	} {
		t.Run(test.subject.Name, func(t *testing.T) {
			report := contract.Check(test.subject)
			var breaks []string
			for _, outcome := range report.Outcomes {
				if outcome.Verdict == framework.Fail {
					breaks = append(breaks, outcome.Rule.ID)
					t.Log(outcome.Rule.ID, outcome.Verdict, strings.TrimSpace(outcome.Reason))
				}
			}
			if !slices.Equal(breaks, test.breaks) {
				t.Errorf("breaks %q, want %q", breaks, test.breaks)
			}
		})
	}
}
