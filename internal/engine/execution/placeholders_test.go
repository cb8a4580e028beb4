package execution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

func TestPolicyPlaceholder(t *testing.T) {
	policy := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}}
	}
	c := caseOn(nil)
	c.ID = "at-x-00001"
	c.Scenario.Spec.Given = []map[string]any{policy("ValidatingAdmissionPolicy", "owner.example.com"), policy("MutatingWebhookConfiguration", "hooks")}
	c.Scenario.Spec.When = []scenario.Step{{Install: []map[string]any{policy("MutatingAdmissionPolicyBinding", "later")}}}
	got, err := scenario.Replace([]any{map[string]any{"$(policy.owner.example.com)/team": "blue"}, "$(policy.later)"}, c.lookup)
	want := []any{map[string]any{"at-x-00001-owner.example.com/team": "blue"}, "at-x-00001-later"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	for _, unknown := range []string{"$(policy.hooks)", "$(policy.owner)", "$(policy.)"} {
		t.Run(unknown, func(t *testing.T) {
			if _, err := scenario.Replace(unknown, c.lookup); err == nil || !strings.Contains(err.Error(), "unknown placeholder "+unknown) {
				t.Errorf("got error %v, want one that names it", err)
			}
		})
	}
}

// A CustomResourceDefinition as it ships can have texts that look like placeholders. In other
// manifests an unknown placeholder is an error.
func TestSubstituteGiven(t *testing.T) {
	t.Parallel()
	c := caseOn(&fakeSandbox{})
	c.ID = "at-x-00001"
	description := map[string]any{"description": "$(VAR_NAME), $(id)"}
	definition := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": description}
	given, err := c.substituteGiven([]map[string]any{definition})
	if err != nil {
		t.Fatal(err)
	}
	if got := given[0]["spec"].(map[string]any)["description"]; got != "$(VAR_NAME), at-x-00001" {
		t.Errorf("got %q", got)
	}
	if _, err := c.substituteGiven([]map[string]any{definition, {"apiVersion": "v1", "kind": "ConfigMap", "data": description}}); err == nil {
		t.Error("an unknown placeholder of a ConfigMap is no error")
	}
}

// A string has the names that the user wrote. A PolicyTest has no placeholders.
func TestNames(t *testing.T) {
	t.Parallel()
	c := caseOn(nil)
	c.ID = "at-abc-00001"
	c.Scenario.Spec.Namespaces = []scenario.Namespace{{Name: "blue"}}
	c.Given = []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "owner.example.com"}}}
	for text, want := range map[string][2]string{
		"policy 'at-abc-00001-owner.example.com' said.": {"policy 'owner.example.com' said."},
		"at-abc-00001-owner.example.com/key = x":        {"owner.example.com/key = x"},
		"CREATE at-abc-00001/c":                         {"CREATE $(namespace)/c"},
		"in at-abc-00001.":                              {"in $(namespace)."},
		"at-abc-00001-blue/c":                           {"$(id)-blue/c", "blue/c"},
		`role "at-abc-00001-owner" exists`:              {`role "$(id)-owner" exists`, `role "owner" exists`},
		"at-abc-installed-p, at-abc-installed":          {"p, $(run)-installed"},
		"at-abc-00001.example.com/v1 Widget":            {"$(id).example.com/v1 Widget"},
		"widgets.at-abc.example.com":                    {"widgets.$(run).example.com"},
		"at-abc-00002-p of another, at-abcd-00001-p":    {"at-abc-00002-p of another, at-abcd-00001-p"},
		"Bearer chat-abc-00001":                         {"Bearer chat-abc-00001"},
	} {
		t.Run(text, func(t *testing.T) {
			if want[1] == "" {
				want[1] = want[0]
			}
			for i, cases := range [][]scenario.Case{nil, {{}}} {
				c.Scenario.Cases = cases
				if got := c.Texts()(text); got != want[i] {
					t.Errorf("%q, %d cases: got %q, want %q", text, len(cases), got, want[i])
				}
			}
		})
	}
}

func TestWalk(t *testing.T) {
	tree := map[string]any{"a": []any{map[string]any{"b": "c"}}}
	if got, ok := walk(tree, "a.0.b"); !ok || got != "c" {
		t.Errorf("a.0.b: got %v, %t", got, ok)
	}
	for _, path := range []string{"a.1.b", "a.x", "b", "a.0.b.c", "a.-1"} {
		t.Run(path, func(t *testing.T) {
			if got, ok := walk(tree, path); ok {
				t.Errorf("got %v, want nothing", got)
			}
		})
	}
}

// infoTarget is a Target with a description.
type infoTarget struct {
	targettest.Target
	info framework.TargetInfo
}

func (t infoTarget) Info() framework.TargetInfo { return t.info }

// Only requests of controllers are left out. If the requests of every other user were, an API
// server that reports a wrong user would pass a scenario that expects no call.
func TestOwnUser(t *testing.T) {
	t.Parallel()
	c := &Case{ID: "at-x-00001", users: map[string]bool{"alice": true, "system:node:n": true}}
	on := func(kind string) {
		c.target = infoTarget{info: framework.TargetInfo{Kind: kind, User: "system:serviceaccount:admissiontest:runner"}}
	}
	for name, want := range map[string]bool{
		"system:serviceaccount:admissiontest:runner": true,
		"alice":            true,
		"system:node:n":    true,
		"mallory":          true,
		"":                 true,
		"system:anonymous": true,
		"system:serviceaccount:at-x-00001:default":                 true,
		"system:serviceaccount:kube-system:root-ca-cert-publisher": false,
		"system:serviceaccount:at-x-000012:default":                false,
		"system:kube-controller-manager":                           false,
		"system:node:other":                                        false,
	} {
		t.Run(name, func(t *testing.T) {
			on(framework.TargetKubeconfig)
			if got := c.ownUser(name); got != want {
				t.Errorf("on a cluster, %q: got %t, want %t", name, got, want)
			}
			on(framework.TargetEnvtest)
			if !c.ownUser(name) {
				t.Errorf("on target envtest, %q: got false, want every user", name)
			}
		})
	}
}

// Without isolation, webhooks get the requests of the API server to itself.
func TestOwnUserAlone(t *testing.T) {
	t.Parallel()
	c := &Case{ID: "at-x-00001", target: infoTarget{info: framework.TargetInfo{Kind: framework.TargetEnvtest, User: "admin"}}}
	for alone, want := range map[bool]bool{true: false, false: true} {
		t.Run(fmt.Sprintf("alone %t", alone), func(t *testing.T) {
			c.Scenario.Alone = alone
			if got := c.ownUser("system:apiserver"); got != want {
				t.Errorf("alone %t: got %t, want %t", alone, got, want)
			}
			if !c.ownUser("admin") || !c.ownUser("alice") {
				t.Errorf("alone %t: a user of the scenario is not its own", alone)
			}
		})
	}
}
