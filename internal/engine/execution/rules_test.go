package execution

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// serving is a Target that serves some resources.
type serving struct{ targettest.Target }

func (serving) RunID() string { return "at-aaaaaaaaaa" }

func (serving) Optional() target.Optional {
	return target.Optional{Resources: func() []metav1.APIResource {
		return []metav1.APIResource{
			{Version: "v1", Name: "configmaps", Namespaced: true}, {Version: "v1", Name: "secrets", Namespaced: true},
			{Version: "v1", Name: "namespaces"}, {Version: "v1", Name: "namespaces/status"},
			{Group: "apps", Version: "v1", Name: "deployments", Namespaced: true}, {Group: "apps", Version: "v1", Name: "deployments/scale", Namespaced: true},
			{Group: "example.com", Version: "v1", Name: "widgets", Namespaced: true}, {Group: "example.com", Version: "v1", Name: "widgets/*", Namespaced: true},
			{Group: "at-aaaaaaaaaa-00002.example.com", Version: "v1", Name: "others", Namespaced: true},
			{Version: "*", Name: "pods", Namespaced: true}, {Version: "*", Name: "pods/*", Namespaced: true},
		}
	}}
}

// ruleOf returns the rule "GROUPS VERSIONS RESOURCES [SCOPE]"; - is the core group.
func ruleOf(text string) map[string]any {
	list := func(text string) []any {
		var all []any
		for item := range strings.SplitSeq(text, ",") {
			if item == "-" {
				item = ""
			}
			all = append(all, item)
		}
		return all
	}
	parts := strings.Fields(text)
	rule := map[string]any{"operations": []any{"*"}, "apiGroups": list(parts[0]), "apiVersions": list(parts[1]), "resources": list(parts[2])}
	if len(parts) > 3 {
		rule["scope"] = parts[3]
	}
	return rule
}

// policyOf returns a policy with rules in one of its lists.
func policyOf(list string, rules ...string) map[string]any {
	var all []any
	for _, rule := range rules {
		all = append(all, ruleOf(rule))
	}
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{"matchConstraints": map[string]any{list: all}},
	}
}

func TestDeadRules(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		rules []string
		// scenario and shipped are parts of the errors for a scenario's own policy and for one of a project.
		scenario, shipped string
	}{
		{[]string{"- v1 configmaps"}, "", ""},
		{[]string{"* * *"}, "", ""},
		{[]string{"* * */*"}, "", ""},
		{[]string{"- v1 configmaps Namespaced"}, "", ""},
		{[]string{"- v1 namespaces/status Cluster"}, "", ""},
		{[]string{"apps v1 */scale"}, "", ""},
		{[]string{"example.com v1 widgets/scale"}, "", ""},
		{[]string{"- v1 pods/exec"}, "", ""}, // Kubernetes has it, this API server does not
		{[]string{"- v1 configmap"}, `did you mean "configmaps"?`, `did you mean "configmaps"?`},
		{[]string{"- v1 ConfigMaps"}, `did you mean "configmaps"?`, `did you mean "configmaps"?`},
		{[]string{"* * configmap"}, `did you mean "configmaps"?`, `did you mean "configmaps"?`},
		{[]string{"core v1 configmaps"}, "the API server serves nothing", "the API server serves nothing"},
		{[]string{"app v1 deployments"}, `did you mean "apps"?`, `did you mean "apps"?`},
		{[]string{"- v1 deployments"}, "the API server serves nothing", "the API server serves nothing"},
		{[]string{"- v2 configmaps"}, "the API server serves nothing", "the API server serves nothing"},
		{[]string{"extensions v1beta1 ingresses"}, "the API server serves nothing", "the API server serves nothing"},
		{[]string{"- v1 configmaps Cluster"}, "the API server serves nothing", "the API server serves nothing"},
		{[]string{"apps v1 deployments/scal"}, `did you mean "deployments/scale"?`, `did you mean "deployments/scale"?`},
		// A part, beside others that match.
		{[]string{"- v1 configmaps,secret"}, `resourceRules[0].resources[1]`, ""},
		{[]string{"-,app v1 configmaps,deployments"}, `resourceRules[0].apiGroups[1]`, ""},
		{[]string{"- v1 configmaps,deploymentconfigs"}, "", ""},
		{[]string{"- v1 configmap,configmaps"}, "", ""},
		{[]string{"- v1,v1beta1 configmaps"}, "", ""},
		{[]string{"- v1 configmaps", "- v1 secret"}, `resourceRules[1].resources[0]`, ""},
		{[]string{"- v1 configmaps", "batch v1beta1 cronjobs"}, `resourceRules[1]`, ""},
		{[]string{"- v1 configmaps", "other.example.com v1 gadgets"}, "", ""},
		// Groups without a CustomResourceDefinition.
		{[]string{"other.example.com v1 gadgets"}, "the API server serves nothing", ""},
		{[]string{"-,other.example.com v1 gadgets"}, "the API server serves nothing", ""},
		{[]string{"later.example.com v1 gadgets"}, "", ""}, // a step installs it
		{[]string{"aggregated.example.com v1 flunders"}, "", ""},
		{[]string{"at-aaaaaaaaaa-00003.example.com v1 others"}, "the API server serves nothing", ""},
	} {
		t.Run(strings.Join(one.rules, "; "), func(t *testing.T) {
			for shipped, want := range map[bool]string{false: one.scenario, true: one.shipped} {
				for _, list := range []string{"resourceRules", "excludeResourceRules"} {
					c := &Case{target: serving{}, shared: newShared()}
					c.Scenario.Spec.When = []scenario.Step{{Install: []map[string]any{
						{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": map[string]any{"group": "later.example.com"}},
					}}}
					c.Given = []map[string]any{{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": map[string]any{"group": "aggregated.example.com"}}}
					if shipped {
						c.Scenario.Cases = []scenario.Case{{}}
					}
					if shipped && list == "excludeResourceRules" {
						want = ""
					}
					got := texts(c.deadRules("given", []map[string]any{policyOf(list, one.rules...)}))
					if (got == "") != (want == "") || !strings.Contains(got, strings.ReplaceAll(want, "resourceRules", list)) {
						t.Errorf("%q in %s, shipped %t: got %q; want %q", one.rules, list, shipped, got, want)
					}
				}
			}
		})
	}
}

// unserved is serving without the kinds of a group, which have no subresources either.
type unserved struct{ serving }

func (unserved) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	if kind.Group == "other.example.com" {
		return false, &framework.NotServedError{Name: kind.GroupVersion().String() + " " + kind.Kind}
	}
	return true, nil
}

// If the API server does not serve the kind of a step, that is why a rule for its resource matches nothing.
func TestRulesForKindsOfSteps(t *testing.T) {
	t.Parallel()
	gadget, configMap := map[string]any{"apiVersion": "other.example.com/v1", "kind": "Gadget"}, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	defines := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": map[string]any{"group": "other.example.com"}}
	for name, test := range map[string]struct {
		rule      string
		steps     []map[string]any
		notServed bool
	}{
		"of a kind that is not served":      {"other.example.com v1 gadgets", []map[string]any{configMap, gadget}, true},
		"of a kind that is served":          {"other.example.com v1 gadgets", []map[string]any{configMap}, false},
		"of a kind that a step defines":     {"- v1 configmap", []map[string]any{defines, gadget}, false},
		"misspelt, beside what is unserved": {"- v1 configmap", []map[string]any{gadget}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Case{target: unserved{serving{targettest.Target{Sandbox: &fakeSandbox{}}}}, shared: newShared(), Given: []map[string]any{policyOf("resourceRules", test.rule)}}
			for _, step := range test.steps {
				c.Scenario.Spec.When = append(c.Scenario.Spec.When, scenario.Step{Create: step})
			}
			if err := c.arrange(t.Context()); err == nil || errors.Is(err, framework.ErrNotServed) != test.notServed {
				t.Errorf("got %v; want a NotServedError: %t", err, test.notServed)
			}
		})
	}
}

// Each webhook has rules of its own, and those that are to match nothing have no errors.
func TestDeadRulesOfWebhooks(t *testing.T) {
	t.Parallel()
	var webhooks []any
	for _, name := range []string{"first", "meant", "last"} {
		webhooks = append(webhooks, map[string]any{"name": name, "rules": []any{ruleOf("- v1 configmap")}})
	}
	c := &Case{target: serving{}, shared: newShared()}
	c.Scenario.Spec.MatchesNothing = []string{"meant", "p"}
	given := []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap"}, policyOf("resourceRules", "- v1 configmap"),
		{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": webhooks},
	}
	problems := c.deadRules("given", given)
	if got := texts(problems); len(problems) != 2 || !strings.Contains(got, "webhooks[0].rules[0].resources[0]") || !strings.Contains(got, "webhooks[2].rules") {
		t.Errorf("got %q; want errors for webhooks 0 and 2", got)
	}
	if problems = (&Case{target: targettest.Target{}, shared: c.shared}).deadRules("given", given); problems != nil {
		t.Errorf("got %q; want none if it is not known what the API server serves", texts(problems))
	}
}

// Nothing is wrong with a rule for a group that discovery could not read, and it is not suggested either.
func TestRulesForABrokenGroup(t *testing.T) {
	t.Parallel()
	judge := ruleJudge{served: []metav1.APIResource{{Group: "broken.example.com", Version: "*", Name: "*/*"}}}
	for rule, want := range map[string]int{
		"broken.example.com v1 gadgets/status Namespaced": 0, "* * gadgets": 0, "- v1 gadgets": 1, "broken.example.con v1 gadgets": 1,
	} {
		t.Run(rule, func(t *testing.T) {
			got := judge.manifest(policyOf("resourceRules", rule), nil)
			if len(got) != want || want > 0 && got[0].hint != "" {
				t.Errorf("got %v; want %d without a hint", got, want)
			}
		})
	}
}

// Of what is installed for all scenarios, only what is surely misspelt is wrong.
func TestMisspeltRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]int{"- v1 configmap": 1, "- v1 configmap,configmaps": 0, "policy v1beta1 podsecuritypolicies": 0, "- v1 configmaps": 0} {
		t.Run(rule, func(t *testing.T) {
			if got := MisspeltRules(serving{}, (&Case{}).errorsOf("given[0]", policyOf("resourceRules", rule))); len(got) != want {
				t.Errorf("got %v; want %d", got, want)
			}
		})
	}
	if got := MisspeltRules(targettest.Target{}, expect.Manifest{Object: policyOf("resourceRules", "- v1 configmap")}); got != nil {
		t.Errorf("got %v; want nothing if it is not known what the API server serves", got)
	}
}

// texts returns the texts of errors.
func texts(problems []*scenario.Error) string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Error())
	}
	return strings.Join(slices.Sorted(slices.Values(all)), "\n")
}
