package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Profile is a named set of requirements of the catalogue. For each minor version of Kubernetes, it has those that
// apply to it.
type Profile struct {
	Name string
	// About says for which API servers it is, in one sentence.
	About string
	// Selects are areas, and patterns of names. Except are patterns of names that it leaves out.
	Selects, Except []string
	// NodeLess leaves out what needs kinds that a control plane without nodes does not serve, such as Pods.
	NodeLess bool
}

// Profiles returns the profiles.
func Profiles() []Profile {
	webhooks := []string{
		"order", "reinvocation", "match", "matchconditions", "selectors", "equivalence", "failurepolicy", "timeout", "patch", "response", "wire", "warning",
		"client", "dryrun", "subresource", "createupdate", "delete", "exemption", "audit.*", "config.webhooks.*", "metrics.*webhooks",
	}
	notOfWebhooks := []string{"order.plugins.*", "order.static.*", "reinvocation.in-tree-change.*"}
	policies := []string{
		"vap", "map", "config.policies.*", "match.policies.*", "selectors.policies.*", "exemption.*policies*", "subresource.policies*", "dryrun.policies*",
		"audit.fail*", "order.plugins.*policies*", "metrics.*policies", "controllers",
	}
	return []Profile{
		{
			Name: "webhooks", About: "The API server calls mutating and validating webhooks as Kubernetes does.",
			Selects: webhooks, Except: append([]string{"*policies*", "audit.fail*"}, notOfWebhooks...),
		},
		{
			Name: "policies", About: "The API server evaluates ValidatingAdmissionPolicies and MutatingAdmissionPolicies as Kubernetes does.",
			Selects: policies,
		},
		{
			Name: "built-in-plugins", About: "The API server has the admission plugins that are compiled into kube-apiserver.",
			Selects: []string{"plugins", "nslifecycle", "chain", "flags", "configfile", "static", "order.plugins.*", "order.static.*", "reinvocation.in-tree-change.*", "metrics.static-manifests", "metrics.pod-security", "metrics.steps-and-plugins", "metrics.requests-and-conditions"},
		},
		{
			Name: "node-less", About: "The API server does the same as for `webhooks` and `policies`, as far as that needs no Pods and other kinds for nodes.",
			Selects: slices.Concat(webhooks, policies), Except: notOfWebhooks, NodeLess: true,
		},
		{
			Name: "aggregated", About: "An API server behind an APIService, with the resources of k8s.io/sample-apiserver, calls webhooks and evaluates policies.",
			Selects: []string{"aggregated"},
		},
	}
}

// ProfileNames returns the names of the profiles.
func ProfileNames() []string {
	var names []string
	for _, p := range Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// ProfileNamed returns the profile of a name. The error has a suggestion.
func ProfileNamed(name string) (Profile, error) {
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("there is no profile %q: want one of %s%s", name, strings.Join(ProfileNames(), ", "), suggest.DidYouMean(name, ProfileNames()))
}

// Of returns the scenarios of the profile, for all minor versions.
func (p Profile) Of(catalogue []scenario.Scenario) ([]scenario.Scenario, error) {
	selected, err := Select(catalogue, p.Selects, Filter{})
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return p.Keep(selected), nil
}

// Keep returns the scenarios that Except does not leave out.
func (p Profile) Keep(selected []scenario.Scenario) []scenario.Scenario {
	return scenario.Keep(selected, func(s scenario.Scenario) bool {
		return (!p.NodeLess || withoutNodes(s)) && !slices.ContainsFunc(p.Except, func(pattern string) bool {
			matches, _ := path.Match(pattern, s.Metadata.Name) // a test matches all
			return matches
		})
	})
}

// withoutNodes reports whether a control plane without nodes serves every kind that the requests of a scenario are
// for. k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic is one.
func withoutNodes(s scenario.Scenario) bool {
	return !slices.ContainsFunc(execution.Of(s), func(request framework.Request) bool {
		switch kind := request.Kind; kind.Group {
		case "":
			return !slices.Contains([]string{"ConfigMap", "Event", "Namespace", "ResourceQuota", "Secret", "ServiceAccount"}, kind.Kind)
		default:
			return slices.Contains([]string{
				"apps", "autoscaling", "batch", "networking.k8s.io", "node.k8s.io", "policy", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
			}, kind.Group)
		}
	})
}
