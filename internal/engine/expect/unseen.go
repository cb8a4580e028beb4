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
			found[cmp.Or(one.Name, "any webhook")] = ""
		case one.Direct || one.Name == "": // or a conversion webhook
		case one.Service != "" && options.Endpoints[one.Service].URL == "":
			found[one.Name] = one.Service
		case one.HostPort != "" && !options.URLs:
			found[one.Name] = ""
		}
	}
	return found
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

// Unusable returns why the scenario cannot run, or "": it has a script for a webhook that the API
// server calls without a Hook.
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
	return ""
}

// Undecidable returns why the scenario, which can run, would show nothing, or "": a step expects or uses calls of webhooks,
// and not all calls are seen.
func (u Unseen) Undecidable(s scenario.Scenario) string {
	if len(u) == 0 || !s.ExpectsCalls() {
		return ""
	}
	return "admissiontest cannot check the expected calls: " + u.String()
}

// scriptedBy returns the names of the webhooks for which a step sets a script.
func scriptedBy(step scenario.Step) []string {
	names := slices.Collect(maps.Keys(step.Script))
	for _, inner := range step.Parallel {
		names = append(names, scriptedBy(inner)...)
	}
	return names
}
