// Package unseen finds the webhooks under test that the API server calls without a Hook. Their calls
// are not recorded. The package says which expectations can be checked without these calls.
package unseen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Webhooks has the webhooks under test of a scenario whose calls are not seen, by name, with NAMESPACE/NAME
// of the Service that the API server calls without a Hook; "" if it calls a URL. Calls of the others go
// through a Hook, which records them. Nil has none.
type Webhooks map[string]string

// Of returns the webhooks under test of a scenario, and of the manifests that are installed
// for all scenarios, that have no Endpoint with a URL.
func Of(s scenario.Scenario, endpoints map[string]framework.Endpoint, installed []map[string]any) Webhooks {
	found := Webhooks{}
	for _, manifest := range installed {
		webhooks, _ := manifest["webhooks"].([]any)
		for _, item := range webhooks {
			webhook, _ := item.(map[string]any)
			name, _ := webhook["name"].(string)
			if _, byURL, _ := unstructured.NestedString(webhook, "clientConfig", "url"); byURL && name != "" {
				found[name] = ""
			}
		}
	}
	for _, of := range []scenario.Scenario{s, {Spec: scenario.Spec{Given: installed}}} {
		for service, names := range of.WebhooksUnderTest() {
			for _, name := range names {
				if endpoints[service].URL == "" && name != "" {
					found[name] = service
				}
			}
		}
	}
	return found
}

// String says what is not seen, and why.
func (u Webhooks) String() string {
	var all []string
	for _, one := range u.Report() {
		all = append(all, one.String())
	}
	return strings.Join(all, "; ")
}

// Report returns the webhooks for a report.
func (u Webhooks) Report() []report.NotSeen {
	names := map[string][]string{}
	for name, service := range u {
		names[service] = append(names[service], name)
	}
	var all []report.NotSeen
	for service, of := range names {
		slices.Sort(of)
		all = append(all, report.NotSeen{Webhooks: of, Service: service})
	}
	slices.SortFunc(all, func(a, b report.NotSeen) int { return strings.Compare(a.Webhooks[0], b.Webhooks[0]) })
	return all
}

// Error is the error of a step that also has expectations of calls that are not seen. Its other
// expectations hold.
type Error struct{ Webhooks Webhooks }

// Error says which calls are not seen.
func (e *Error) Error() string {
	return "admissiontest cannot check the expected calls: " + e.Webhooks.String()
}

// Decidable returns the part of an expectation that does not need the calls that are not seen, and
// whether there is another part. An expectation of all calls is about these calls too.
func (u Webhooks) Decidable(expect *scenario.Expectation) (part *scenario.Expectation, complete bool) {
	if len(u) == 0 || expect == nil {
		return expect, true
	}
	decidable := *expect
	complete = len(expect.Distinct) == 0 && !expect.Serial && !expect.AnsweredLast
	if expect.Calls != nil {
		calls := *expect.Calls
		if calls.InOrder != nil || calls.AnyOrder != nil || calls.Include == nil && calls.Exclude == nil {
			complete = false
		}
		of := func(call scenario.Call) bool { return u.has(call.Webhook) }
		calls.InOrder, calls.AnyOrder = slices.DeleteFunc(slices.Clone(calls.InOrder), of), slices.DeleteFunc(slices.Clone(calls.AnyOrder), of)
		calls.Include, calls.Exclude = slices.DeleteFunc(slices.Clone(calls.Include), of), slices.DeleteFunc(slices.Clone(calls.Exclude), u.has)
		complete = complete && len(calls.Include) == len(expect.Calls.Include) && len(calls.Exclude) == len(expect.Calls.Exclude)
		decidable.Calls = &calls
	}
	// These compare calls with each other: some of the calls decide nothing.
	decidable.Distinct, decidable.Serial, decidable.AnsweredLast = nil, false, false
	if slices.ContainsFunc(expect.Overlapping, u.has) {
		decidable.Overlapping, complete = nil, false
	}
	return &decidable, complete
}

func (u Webhooks) has(name string) bool { _, is := u[name]; return is }

// Seen returns the calls of a Trace without the calls of the webhooks in u: another webhook can have
// the same name.
func (u Webhooks) Seen(trace framework.Trace) framework.Trace {
	return slices.DeleteFunc(slices.Clone(trace), func(call framework.Call) bool { return u.has(call.Webhook) })
}

// Scripted returns why the scripts of a scenario cannot be used, or "": one of them is for a webhook
// that the API server calls without a Hook.
func (u Webhooks) Scripted(s scenario.Scenario) string {
	names := slices.Collect(maps.Keys(s.Spec.Hooks))
	for _, step := range s.Spec.When {
		names = append(names, scriptedBy(step)...)
	}
	slices.Sort(names)
	for _, name := range names {
		if service := u[name]; service != "" {
			return fmt.Sprintf("the scenario has a script for webhook %s, but the API server calls this webhook through Service %s, without a Hook: give the URL of the webhook with --endpoint %s=URL", name, service, service)
		}
	}
	return ""
}

// scriptedBy returns the names of the webhooks for which a step sets a script.
func scriptedBy(step scenario.Step) []string {
	names := slices.Collect(maps.Keys(step.Script))
	for _, inner := range step.Parallel {
		names = append(names, scriptedBy(inner)...)
	}
	return names
}
