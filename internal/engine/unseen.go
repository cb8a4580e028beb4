package engine

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

// unseen has the webhooks under test of a scenario whose calls are not seen, by name, with NAMESPACE/NAME
// of the Service that the API server calls without a Hook; "" if it calls a URL. Calls of the others go
// through a Hook, which records them.
type unseen map[string]string

// unseenWebhooks returns the webhooks under test of a scenario, and of the manifests that are installed
// for all scenarios, that have no Endpoint with a URL.
func unseenWebhooks(s scenario.Scenario, endpoints map[string]framework.Endpoint, installed []map[string]any) unseen {
	found := unseen{}
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
func (u unseen) String() string {
	var all []string
	for _, one := range u.report() {
		all = append(all, one.String())
	}
	return strings.Join(all, "; ")
}

// report returns the webhooks for a report.
func (u unseen) report() []report.NotSeen {
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

// noteNotSeen notes for the report what is not seen.
func (r *run) noteNotSeen(of unseen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notSeen == nil {
		r.notSeen = unseen{}
	}
	maps.Copy(r.notSeen, of)
}

// unseenError is the error of a step whose expectations hold as far as they can be decided, and are
// also about calls that are not seen.
type unseenError struct{ unseen unseen }

// Error says which calls are not seen.
func (e *unseenError) Error() string {
	return "the expectation of calls cannot be decided: " + e.unseen.String()
}

// decidable returns the part of an expectation that does not need the calls that are not seen, and
// whether there is another part. An expectation of all calls is about these calls too.
func (u unseen) decidable(expect *scenario.Expectation) (part *scenario.Expectation, complete bool) {
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

func (u unseen) has(name string) bool { _, is := u[name]; return is }

// seen returns the calls of a Trace apart from those of webhooks that have the name of one whose
// calls are not seen.
func (u unseen) seen(trace framework.Trace) framework.Trace {
	return slices.DeleteFunc(slices.Clone(trace), func(call framework.Call) bool { return u.has(call.Webhook) })
}

// scripted returns why the scripts of a scenario cannot be used, or "": one is for a webhook that
// the API server calls without us.
func (u unseen) scripted(s scenario.Scenario) string {
	names := slices.Collect(maps.Keys(s.Spec.Hooks))
	for _, step := range s.Spec.When {
		names = append(names, scriptedBy(step)...)
	}
	slices.Sort(names)
	for _, name := range names {
		if service := u[name]; service != "" {
			return fmt.Sprintf("it has a script for webhook %s, which the API server calls by Service %s itself: give the URL of the webhook with --endpoint %s=URL", name, service, service)
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
