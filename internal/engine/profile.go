package engine

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/report"
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
		"client", "dryrun", "subresource", "createupdate", "delete", "exemption", "tokens", "audit.*", "config.webhooks.*", "metrics.*webhooks",
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

// NewestMinors are the newest minor versions of Kubernetes that the catalogue supports. Only for
// these an API server conforms.
func NewestMinors() []string { return []string{"1.37", "1.36"} }

// Judge judges the claim of an API server to a profile, by the outcomes of a report. docs/conformance.md has the
// rules.
func (p Profile) Judge(r report.Report, catalogue []scenario.Scenario) (report.Claim, error) {
	claim := report.Claim{Profile: p.Name, Verdict: report.Conformant}
	if reason := report.ImplausibleVersion(r.Target.ServerVersion); reason != "" {
		claim.Verdict, claim.Missing = report.Partial, []string{reason}
		return claim, nil
	}
	server, err := version.ParseGeneric(r.Target.ServerVersion)
	if err != nil {
		return claim, err
	}
	claim.Kubernetes = fmt.Sprintf("%d.%d", server.Major(), server.Minor())
	required, err := p.Of(catalogue)
	if err != nil {
		return claim, err
	}
	outcomes := map[string]report.Outcome{}
	for _, outcome := range r.Outcomes {
		outcomes[outcome.Name] = outcome
	}
	missing := map[string]int{}
	hasMust := slices.ContainsFunc(required, func(s scenario.Scenario) bool { return s.Spec.Level == framework.Must })
	for _, s := range scenario.Cases(required) {
		if OtherMinor(s, r.Target.ServerVersion) != "" {
			continue
		}
		claim.Requirements++
		counts := s.Spec.Level == framework.Must || !hasMust
		switch outcome, ran := outcomes[s.Metadata.Name]; {
		case !ran || outcome.NotReached:
			missing["not run"]++
		case outcome.Verdict == framework.Pass:
			claim.Passed++
		case outcome.Verdict == framework.Fail && counts:
			claim.Failed = append(claim.Failed, s.Metadata.Name)
		case outcome.Verdict == framework.Fail, outcome.Verdict == framework.Unsupported && !counts:
			claim.NotMet = append(claim.NotMet, s.Metadata.Name)
		default:
			missing[string(outcome.Verdict)]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		claim.Missing = append(claim.Missing, fmt.Sprintf("%d %s", missing[why], why))
	}
	if claim.Passed == 0 {
		claim.Missing = append(claim.Missing, "nothing passed")
	}
	if !slices.Contains(NewestMinors(), claim.Kubernetes) {
		claim.Missing = append(claim.Missing, fmt.Sprintf("older than Kubernetes %s", NewestMinors()[1]))
	}
	switch {
	case len(claim.Failed) > 0:
		claim.Verdict = report.NotConformant
	case len(claim.Missing) > 0:
		claim.Verdict = report.Partial
	}
	return claim, nil
}

// Verify returns what is wrong with a report by the catalogue: outcomes that are not of its requirements, or have
// another level or sentence, and a claim that does not follow from the outcomes.
func Verify(r report.Report, catalogue []scenario.Scenario) ([]string, error) {
	known := map[string]scenario.Scenario{}
	for _, s := range scenario.Cases(catalogue) {
		known[s.Metadata.Name] = s
	}
	var problems []string
	for i, outcome := range r.Outcomes {
		s, exists := known[outcome.Name]
		switch {
		case !exists:
			problems = append(problems, fmt.Sprintf("outcomes[%d]: the catalogue of this version has no requirement %q", i, outcome.Name))
		case outcome.Level != s.Spec.Level:
			problems = append(problems, fmt.Sprintf("outcomes[%d]: %s has the level %s, want %s", i, outcome.Name, outcome.Level, s.Spec.Level))
		case outcome.Requirement != s.Spec.Requirement:
			problems = append(problems, fmt.Sprintf("outcomes[%d]: %s is not about the same requirement: %q, want %q", i, outcome.Name, outcome.Requirement, s.Spec.Requirement))
		}
	}
	if r.Claim == nil {
		return problems, nil
	}
	claimed, err := ProfileNamed(r.Claim.Profile)
	if err != nil {
		return append(problems, fmt.Sprintf("claim: %v", err)), nil
	}
	want, err := claimed.Judge(r, catalogue)
	if err == nil && !reflect.DeepEqual(want, *r.Claim) {
		problems = append(problems, fmt.Sprintf("claim: it says %q; by the outcomes it is %q", r.Claim, want))
	}
	return problems, err
}
