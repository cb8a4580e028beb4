package reference

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
	"k8s.io/apiserver/pkg/admission"
)

// entry is a plugin that the contract suite tests.
type entry struct {
	subject contract.Subject
	waivers []waiver
	// start, if set, starts the servers that the plugin calls, and completes the Subject.
	start func(*testing.T, *contract.Subject)
}

// waiver is a rule that a plugin breaks.
type waiver struct {
	rule string
	// why says what was observed, and whether it is intended.
	why string
	// source is file:line in k8s.io/kubernetes v1.37.2 or the staging module.
	source string
}

// banFlunder is the plugin of k8s.io/sample-apiserver, which many plugins are copied from.
const banFlunder = "BanFlunder"

// entries returns every plugin, by name.
func entries() map[string]func() entry {
	all := map[string]func() entry{}
	for _, group := range []map[string]func() entry{
		namespaceEntries(), podEntries(), objectEntries(),
	} {
		maps.Copy(all, group)
	}
	return all
}

// fromKubernetes returns the Source of a plugin that kube-apiserver registers.
func fromKubernetes(name string) harness.Source {
	return harness.FromRegister(name, func(plugins *admission.Plugins) {
		server.RegisterAllAdmissionPlugins(plugins) // the plugins of k8s.io/apiserver
		options.RegisterAllAdmissionPlugins(plugins)
	})
}

// TestEveryPlugin fails if a plugin of kube-apiserver has no Subject here.
func TestEveryPlugin(t *testing.T) {
	known := entries()
	for _, name := range append(slices.Clone(options.AllOrderedPlugins), banFlunder) {
		if _, ok := known[name]; !ok {
			t.Errorf("%s has no Subject", name)
		}
	}
}

// TestPlugins runs the contract suite for every plugin, and compares docs/plugins.md with the
// results.
func TestPlugins(t *testing.T) {
	reports := map[string]contract.Report{}
	known := entries()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		t.Run(name, func(t *testing.T) {
			reports[name] = check(t, name, known[name]())
		})
	}
	if len(reports) == len(known) { // not if -run selected some
		compareTable(t, reports, known)
		for _, wrong := range tooOften(sharesOf(reports)) {
			t.Error(wrong)
		}
	}
}

func check(t *testing.T, name string, e entry) contract.Report {
	t.Helper()
	e.subject.Name = name
	if e.start != nil {
		e.start(t, &e.subject)
	}
	selected := []contract.Option{contract.Budget(2 * time.Minute)} // ServiceAccount sleeps for one to two seconds before it refuses
	for _, each := range e.waivers {
		selected = append(selected, contract.Waive(each.rule, fmt.Sprintf("%s (%s)", each.why, each.source)))
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
