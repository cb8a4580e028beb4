package expect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Unseen has the webhooks under test of a scenario whose calls are not seen, by name, with NAMESPACE/NAME
// of the Service that the API server calls without a Hook; "" if an Endpoint would not change that. Calls of
// the others go through a Hook, which records them. Nil has none.
type Unseen map[string]string

// anyWebhook is the name in Unseen of one whose name is not known.
const anyWebhook = "any webhook"

// UnseenOptions say which calls go through a Hook.
type UnseenOptions struct {
	// Endpoints are the Endpoints by NAMESPACE/NAME of a Service.
	Endpoints map[string]framework.Endpoint
	// Installed are the manifests that are installed for all scenarios.
	Installed []map[string]any
	// URLs is true if calls of a URL go through a Hook: see apiserver.Options.Credentials.
	URLs bool
}

// UnseenOf returns the webhooks under test of a scenario, and of what is installed for all scenarios, that are
// called without a Hook. It ignores those that a request or a file configures if no step expects calls.
func UnseenOf(s scenario.Scenario, options UnseenOptions) Unseen {
	found := Unseen{}
	expects := s.ExpectsCalls()
	for _, one := range append(webhooksIn(options.Installed), WebhooksUnderTest(s)...) {
		switch {
		case one.Direct && expects:
			found[cmp.Or(one.Name, anyWebhook)] = ""
		case one.Direct || one.Name == "": // or a conversion webhook
		case one.Service != "" && options.Endpoints[one.Service].URL == "":
			found[one.Name] = one.Service
		case one.HostPort != "" && !options.URLs:
			found[one.Name] = ""
		}
	}
	return found
}

// Named returns the webhooks with the names that replace returns. One whose name it cannot replace can be any.
func (u Unseen) Named(replace func(name string) (string, error)) Unseen {
	named := Unseen{}
	for name, service := range u {
		replaced, err := replace(name)
		if err != nil {
			replaced = anyWebhook
		}
		named[replaced] = service
	}
	return named
}

// String says what is not seen, and why.
func (u Unseen) String() string {
	var all []string
	for _, one := range u.Report() {
		all = append(all, one.String())
	}
	return strings.Join(all, "; ")
}

// Report returns the webhooks for a report.
func (u Unseen) Report() []report.NotSeen {
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

// UnseenError is the error of a step that also has expectations of calls that are not seen. Its other
// expectations hold.
type UnseenError struct{ Webhooks Unseen }

// Error says which calls are not seen.
func (e *UnseenError) Error() string {
	return "admissiontest cannot check the expected calls: " + e.Webhooks.String()
}

// Decidable returns the part of an expectation that does not need the calls that are not seen, and
// whether there is another part. An expectation of all calls is about these calls too.
func (u Unseen) Decidable(expect *scenario.Expectation) (part *scenario.Expectation, complete bool) {
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

func (u Unseen) has(name string) bool {
	_, is := u[name]
	_, all := u[anyWebhook]
	return is || all
}

// Seen returns the calls of a Trace without the calls of the webhooks in u: another webhook can have
// the same name.
func (u Unseen) Seen(trace framework.Trace) framework.Trace {
	return slices.DeleteFunc(slices.Clone(trace), func(call framework.Call) bool { return u.has(call.Webhook) })
}

// Unusable returns why the scenario cannot be judged, or "": it has a script for a webhook that the API
// server calls without a Hook, or uses its calls in a placeholder.
func (u Unseen) Unusable(s scenario.Scenario) string {
	names := slices.Collect(maps.Keys(s.Spec.Hooks))
	for _, step := range s.Spec.When {
		names = append(names, scriptedBy(step)...)
	}
	slices.Sort(names)
	for _, name := range names {
		service, is := u[name]
		switch {
		case service != "":
			return fmt.Sprintf("the scenario has a script for webhook %s, but the API server calls this webhook through Service %s, without a Hook: give the URL of the webhook with --endpoint %s=URL", name, service, service)
		case is:
			return fmt.Sprintf("the scenario has a script for webhook %s, but the API server calls this webhook without a Hook: give its configuration in given or install, with a Service that has an --endpoint", name)
		}
	}
	if len(u) > 0 && s.UsesCalls() {
		return "a placeholder $(steps.ID.calls.…) needs all calls of a step: " + u.String()
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
