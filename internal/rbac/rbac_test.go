package rbac

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/scenarios"
)

func catalogue(t *testing.T) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// docs/rbac.yaml has the rights of the whole catalogue.
func TestCatalogue(t *testing.T) {
	m, err := New(Options{Scenarios: catalogue(t), Service: true})
	unknown := slices.DeleteFunc(m.Unknown, func(kind schema.GroupVersionKind) bool { return kind.Group == "wardle.example.com" }) // of k8s.io/sample-apiserver
	if err != nil || len(unknown) > 0 {
		t.Fatalf("New: %v, unknown kinds %v", err, unknown)
	}
	golden.Compare(t, "../../docs/rbac.yaml", m.String())
}

// Rights become as few rules as possible, and rights to know about keep their own rules.
func TestRules(t *testing.T) {
	rights := []apiserver.Right{
		{Verb: "delete", Resource: "pods"}, {Verb: "get", Resource: "pods"}, {Verb: "get", Resource: "services"}, {Verb: "delete", Resource: "services"},
		{Verb: "create", Resource: "secrets"}, {Verb: "create", Resource: "services"}, {Verb: "create", Resource: "endpoints"}, {Verb: "get", Resource: "endpoints"}, {Verb: "delete", Resource: "endpoints"},
		{Verb: "impersonate", Resource: "users", Name: "b"}, {Verb: "impersonate", Resource: "users", Name: "a"}, {Verb: "impersonate", Resource: "groups", Name: "a"},
		{Verb: "get", Path: "/metrics"}, {Verb: "get", Path: "/livez"},
		{Verb: "", Resource: "pods", Subresource: "proxy"}, {Verb: "get", Resource: "pods", Subresource: "proxy"},
	}
	var got []string
	for _, rule := range rules(rights) {
		got = append(got, flow(rule))
	}
	want := []string{
		`{apiGroups: [""], resources: [endpoints, services], verbs: [create, get, delete]}`,
		`{apiGroups: [""], resources: [groups], resourceNames: [a], verbs: [impersonate]}`,
		`{apiGroups: [""], resources: [pods], verbs: [get, delete]}`,
		`{apiGroups: [""], resources: [pods/proxy], verbs: [get, ""]}`,
		`{apiGroups: [""], resources: [secrets], verbs: [create]}`,
		`{apiGroups: [""], resources: [users], resourceNames: [a, b], verbs: [impersonate]}`,
		`{nonResourceURLs: ["/livez", "/metrics"], verbs: [get]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The rights by which an account can become an administrator are marked.
func TestRemark(t *testing.T) {
	for text, full := range map[string]bool{
		"impersonate groups system:masters": true, "impersonate users": true, "impersonate groups": true,
		"create nodes/proxy": true, "create serviceaccounts/token": true, "list secrets": true, "get secrets": true,
		"create secrets": false, "impersonate users admissiontest:a": false, "create pods": false, "list pods": false,
	} {
		t.Run(text, func(t *testing.T) {
			parts := strings.Fields(text)
			rule := rbacv1.PolicyRule{Verbs: parts[:1], APIGroups: []string{""}, Resources: parts[1:2], ResourceNames: parts[2:]}
			if got := strings.HasSuffix(remark(rule), asAdministrator); got != full {
				t.Errorf("remark %q; want it marked: %t", remark(rule), full)
			}
		})
	}
}

// The engine and the areas that only need what it needs get no Secrets and do not
// impersonate; other areas impersonate listed users only.
func TestLeast(t *testing.T) {
	m, err := New(Options{Scenarios: catalogue(t)})
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for _, role := range m.Roles {
		for _, rule := range role.Rules {
			if strings.HasSuffix(remark(rule), asAdministrator) {
				full++
			}
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") {
				t.Errorf("%s: %s", role.Name, flow(rule))
			}
			if slices.Contains(rule.Verbs, "impersonate") && len(rule.ResourceNames) == 0 {
				t.Errorf("%s: any user: %s", role.Name, flow(rule))
			}
			if text := flow(rule); role.Name == "admissiontest-engine" && (strings.Contains(text, "secrets") || strings.Contains(text, "impersonate")) {
				t.Errorf("%s: %s", role.Name, text)
			}
		}
	}
	if full > 9 {
		t.Errorf("%d rules are marked %s; want no more than before: give a scenario another object", full, asAdministrator)
	}
}

// An aggregated API server gets the right to read every kind of configuration, by the ServiceAccount that is named.
func TestAggregated(t *testing.T) {
	text, err := Aggregated(Options{Namespace: "wardle", Account: "apiserver"})
	if err != nil || strings.Contains(text, "NAMESPACE") || strings.Contains(text, "ACCOUNT") || strings.Count(text, "name: apiserver, namespace: wardle") != 3 {
		t.Errorf("%v; want three bindings for the ServiceAccount:\n%s", err, text)
	}
	for _, kind := range install.AdmissionKinds() {
		t.Run(kind, func(t *testing.T) {
			resource := strings.ToLower(strings.TrimSuffix(kind, "y")) + "s"
			if strings.HasSuffix(kind, "Policy") {
				resource = strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies"
			}
			if !strings.Contains(text, "- "+resource+"\n") {
				t.Errorf("no right to %s", resource)
			}
		})
	}
	if _, err := Aggregated(Options{Namespace: "Not a name"}); err == nil {
		t.Error("no error for a namespace that is no name")
	}
}
