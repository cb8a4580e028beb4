package execution

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// An effective policy could refuse what is installed after it, so bindings come last.
func TestArrangeOrder(t *testing.T) {
	t.Parallel()
	of := func(group, kind string) map[string]any { return map[string]any{"apiVersion": group, "kind": kind} }
	const admission = "admissionregistration.k8s.io/v1"
	sandbox := &fakeSandbox{}
	c := caseOn(sandbox)
	c.Given = []map[string]any{
		of(admission, "ValidatingAdmissionPolicy"), of(admission, "ValidatingAdmissionPolicyBinding"),
		of(admission, "MutatingWebhookConfiguration"), of("rbac.authorization.k8s.io/v1", "RoleBinding"),
	}
	if err := (&Setup{Case: c}).Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"RoleBinding", "ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"}
	if !slices.Equal(sandbox.installed, want) {
		t.Errorf("installed %v; want %v", sandbox.installed, want)
	}
}

// A namespace gets its ServiceAccount if a scenario names Pods or ServiceAccounts anywhere, unless it creates
// that ServiceAccount. The namespaces of Kubernetes get theirs if it names them.
func TestAccounts(t *testing.T) {
	t.Parallel()
	of := func(policyTest bool, given []map[string]any, steps ...scenario.Step) *Case {
		c := caseOn(&fakeSandbox{})
		c.ID, c.Given = "at-abcdefghij-00001", given
		c.Scenario.Spec.When = steps
		if policyTest {
			c.Scenario.Cases = []scenario.Case{{}}
		}
		return c
	}
	object := func(kind, name, namespace string) map[string]any {
		metadata := map[string]any{"name": name}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata}
	}
	for name, test := range map[string]struct {
		c    *Case
		want []string
	}{
		"nothing":         {of(false, []map[string]any{object("ConfigMap", "a", "kube-system")}), nil},
		"request":         {of(false, nil, scenario.Step{Subresource: "binding", Parent: &scenario.ObjectReference{Kind: "Pod"}}), []string{""}},
		"given":           {of(false, []map[string]any{{"kind": "ServiceAccount"}}), []string{""}},
		"token":           {of(false, []map[string]any{{"kind": "TokenRequest"}}), []string{""}},
		"resource":        {of(false, []map[string]any{{"resources": []any{"pods"}}}), []string{""}},
		"PolicyTest":      {of(true, nil), []string{""}},
		"system":          {of(false, nil, scenario.Step{Create: object("Pod", "a", "kube-system")}), []string{"", "kube-system"}},
		"created":         {of(true, nil, scenario.Step{Create: object("ServiceAccount", "default", "")}), nil},
		"created, system": {of(true, nil, scenario.Step{Create: object("ServiceAccount", "default", "default")}, scenario.Step{Create: object("Pod", "a", "kube-system")}), []string{"", "kube-system"}},
		"another created": {of(true, nil, scenario.Step{Create: object("ServiceAccount", "builder", "default")}), []string{"", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			needs := test.c.accounts()
			var got []string
			for _, suffix := range []string{"", "default", "kube-system"} {
				namespace := suffix
				if suffix == "" {
					namespace = test.c.ID
				}
				if needs(namespace) {
					got = append(got, suffix)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got accounts in %q, want %q", got, test.want)
			}
		})
	}
}

// policyTest returns a PolicyTest with a case for each step. All manifests exist only for its requests.
func policyTest(given []map[string]any, steps map[string]scenario.Step) scenario.Scenario {
	s := scenario.Scenario{Spec: scenario.Spec{Given: given}, Existing: len(given)}
	for name, step := range steps {
		s.Cases = append(s.Cases, scenario.Case{Name: name, When: []scenario.Step{step}})
	}
	return s
}

// What is arranged is for all cases, unless they are removed. Each case has its own state.
func TestCasesOfASetup(t *testing.T) {
	t.Parallel()
	create := func(name string) scenario.Step {
		return scenario.Step{As: &framework.User{Name: "jane"}, Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	}
	setup, err := New(policyTest(nil, map[string]scenario.Step{"a": create("x"), "b": create("y")}), targettest.Target{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := func(c *Case) (requested, granted []string) {
		_, requests := c.Requests()
		for _, request := range requests {
			requested = append(requested, request.Name)
		}
		for _, request := range c.granted() {
			granted = append(granted, request.Name)
		}
		return requested, granted
	}
	check := func(c *Case, want ...string) {
		t.Helper()
		requested, granted := names(c)
		if diff := cmp.Diff([][]string{want, want}, [][]string{requested, granted}); diff != "" {
			t.Errorf("requests and rights (-want +got):\n%s", diff)
		}
	}
	check(setup.Case, "x", "y")
	check(setup.Cases[0], "x")
	check(setup.Cases[1], "y")
	first, second := setup.Cases[0], setup.Cases[1]
	if first.ID != second.ID || first.shared == second.shared {
		t.Errorf("the cases have the IDs %s and %s, and share their state: %t", first.ID, second.ID, first.shared == second.shared)
	}
	setup.Keep(func(c *Case) bool { return c != first })
	check(setup.Case, "y")
}
