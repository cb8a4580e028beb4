package reference

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"
	gatestesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/fakes/effectiveversion"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// entry is a plugin that the contract suite tests.
type entry struct {
	subject contract.Subject
	waivers []waiver
}

// waiver is a rule that a plugin breaks.
type waiver struct {
	Rule string `json:"rule"`
	// Why says what was observed, and whether it is intended.
	Why string `json:"why"`
	// Source is file:line in k8s.io/kubernetes v1.37.2 or the staging module.
	Source string `json:"source"`
}

// banFlunder is the plugin of k8s.io/sample-apiserver, which many plugins are copied from.
const banFlunder = "BanFlunder"

// plugins returns the names of every plugin of kube-apiserver, and of banFlunder.
func plugins() []string { return append(slices.Clone(options.AllOrderedPlugins), banFlunder) }

// entryOf returns a plugin: what its file says, and what a file cannot say.
func entryOf(t *testing.T, name string) entry {
	t.Helper()
	if name == banFlunder {
		return banFlunderEntry()
	}
	subject, waivers := subjectOf(t, name)
	switch name {
	case "MutatingAdmissionPolicy":
		subject.Source = harness.FromFactory(schooled)
	case "PodSecurity":
		subject.Inject = func(*fakes.World) []fakes.Injector {
			return []fakes.Injector{effectiveversion.Inject(compatibility.NewEffectiveVersionFromString("1.37", "", ""))}
		}
	case "Priority": // it reads the gate of the process
		gatestesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gatestesting.FeatureOverrides{features.GenericWorkload: true})
	case "ResourceQuota":
		subject.Inject = func(w *fakes.World) []fakes.Injector {
			configuration, err := install.NewQuotaConfigurationForAdmission(w.Informers(), nil)
			if err != nil {
				return nil // the Initializer's own quota counts nothing, which the Reject requests find
			}
			return []fakes.Injector{fakes.InjectQuotaConfiguration(configuration)}
		}
	}
	return entry{subject, waivers}
}

// fromKubernetes returns the Source of a plugin that kube-apiserver registers.
func fromKubernetes(name string) harness.Source {
	return harness.FromRegister(name, func(plugins *admission.Plugins) {
		server.RegisterAllAdmissionPlugins(plugins) // the plugins of k8s.io/apiserver
		options.RegisterAllAdmissionPlugins(plugins)
	})
}

// harnessOf is the plugin of a Subject, in a World as the Subject says.
func harnessOf(t *testing.T, subject contract.Subject, more ...fakes.Option) *harness.Harness {
	t.Helper()
	w := fakes.NewWorld(t, slices.Concat(subject.World, more)...)
	options := []harness.Option{harness.WithWorld(w)}
	if subject.Scheme != nil {
		options = append(options, harness.WithScheme(subject.Scheme))
	}
	if subject.Config != "" {
		options = append(options, harness.WithConfig(subject.Config))
	}
	if subject.Inject != nil {
		options = append(options, harness.WithInjectors(subject.Inject(w)...))
	}
	return harness.New(t, subject.Source, options...)
}

// TestVerdicts fails if a plugin refuses a request of Subject.Allow, or admits one of
// Subject.Reject. Such a request would not reach the code that it is meant to reach.
func TestVerdicts(t *testing.T) {
	for _, name := range plugins() {
		t.Run(name, func(t *testing.T) {
			subject := entryOf(t, name).subject
			for i, request := range slices.Concat(subject.Allow, subject.Reject) {
				res := harnessOf(t, subject).Do(request)
				if allow := i < len(subject.Allow); allow != (res.Err == nil) {
					t.Errorf("%s: under Allow: %t\n%s", request, allow, res)
				}
			}
		})
	}
}

// TestPlugins runs the contract suite for every plugin, and compares docs/plugins.md with the
// results.
func TestPlugins(t *testing.T) {
	reports, waivers := map[string]contract.Report{}, map[string][]waiver{}
	for _, name := range plugins() {
		t.Run(name, func(t *testing.T) {
			e := entryOf(t, name)
			reports[name], waivers[name] = check(t, name, e), e.waivers
		})
	}
	if len(reports) == len(plugins()) { // not if -run selected some
		compareTable(t, reports, waivers)
		for _, wrong := range tooOften(sharesOf(reports)) {
			t.Error(wrong)
		}
	}
}

func check(t *testing.T, name string, e entry) contract.Report {
	t.Helper()
	e.subject.Name = name
	selected := []contract.Option{contract.Budget(2 * time.Minute)} // ServiceAccount sleeps for one to two seconds before it refuses
	for _, each := range e.waivers {
		selected = append(selected, contract.Waive(each.Rule, fmt.Sprintf("%s (%s)", each.Why, each.Source)))
	}
	report := contract.Check(e.subject, selected...)
	for _, misuse := range report.Misuse {
		t.Error(misuse)
	}
	for _, outcome := range report.Outcomes {
		t.Run(outcome.Rule.String(), func(t *testing.T) {
			switch {
			case outcome.Verdict == framework.Pass:
			case outcome.Verdict == framework.Fail, outcome.Verdict == framework.Errored:
				t.Error(outcome.Text(name))
			default:
				t.Skip(outcome.Text(name))
			}
		})
	}
	return report
}
