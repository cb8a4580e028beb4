package engine

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"

	"github.com/google/go-cmp/cmp"
)

func TestSubstitute(t *testing.T) {
	lookup := func(name string) (any, bool) {
		switch name {
		case "id":
			return "at-x-001", true
		case "steps.s.object.metadata.generation":
			return int64(3), true
		}
		return nil, false
	}
	type inner struct {
		Text string
		Keys map[string]any
		List []any
		Ptr  *string
		F    func()
	}
	pointed := "p-$(id)"
	in := inner{
		Text: "a $(id) b", Keys: map[string]any{"$(id)/key": map[string]any{"n": "$(steps.s.object.metadata.generation)"}},
		List: []any{"$(id)", 7, nil, true}, Ptr: &pointed,
	}
	got, err := substitute(in, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"at-x-001/key": map[string]any{"n": int64(3)}}
	if diff := cmp.Diff(want, got.Keys); diff != "" {
		t.Errorf("keys: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]any{"at-x-001", 7, nil, true}, got.List); diff != "" {
		t.Errorf("list: -want +got\n%s", diff)
	}
	if got.Text != "a at-x-001 b" || *got.Ptr != "p-at-x-001" {
		t.Errorf("texts: got %q and %q", got.Text, *got.Ptr)
	}
	if *in.Ptr != "p-$(id)" || in.List[0] != "$(id)" {
		t.Error("the original was changed")
	}
}

func TestSubstituteUnknown(t *testing.T) {
	_, err := substitute("x $(steps.none.object)", func(string) (any, bool) { return nil, false })
	if err == nil || !strings.Contains(err.Error(), "$(steps.none.object)") {
		t.Errorf("got error %v, want one that names the placeholder", err)
	}
}

func TestWalk(t *testing.T) {
	tree := map[string]any{"a": []any{map[string]any{"b": "c"}}}
	if got, ok := walk(tree, "a.0.b"); !ok || got != "c" {
		t.Errorf("a.0.b: got %v, %t", got, ok)
	}
	for _, path := range []string{"a.1.b", "a.x", "b", "a.0.b.c", "a.-1"} {
		if got, ok := walk(tree, path); ok {
			t.Errorf("%s: got %v, want nothing", path, got)
		}
	}
}

func TestTooOld(t *testing.T) {
	for _, c := range []struct {
		server, since string
		want          bool
	}{
		{"v1.36.3", "1.36", false}, {"v1.35.4+k3s1", "1.36", true}, {"v2.0.0", "1.36", false}, {"v1.40.0-alpha.1", "1.36", false},
		{"v1.36.3", "", false}, {"unknown", "", false}, {"unknown", "1.36", true}, {"", "1.36", true},
	} {
		s := scenario.Scenario{Spec: scenario.Spec{Since: c.since}}
		if got := tooOld(s, c.server); (got != "") != c.want {
			t.Errorf("tooOld(since %s, server %s) = %q, want a reason: %t", c.since, c.server, got, c.want)
		}
	}
}

func TestSubstituteLiteral(t *testing.T) {
	lookup := func(name string) (any, bool) { return "value", name == "id" }
	for text, want := range map[string]string{
		"$$(id)": "$(id)", "a $$(POD_NAME) $(id)": "a $(POD_NAME) value", "$$$(id)": "$$(id)", "$$": "$$", "$ $(id)": "$ value",
	} {
		got, err := substitute(map[string]any{text: []any{text}}, lookup)
		if diff := cmp.Diff(map[string]any{want: []any{want}}, got); err != nil || diff != "" {
			t.Errorf("%s: error %v, -want +got\n%s", text, err, diff)
		}
	}
}

func TestPolicyPlaceholder(t *testing.T) {
	policy := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}}
	}
	c := caseOn(nil)
	c.id = "at-x-00001"
	c.scenario.Spec.Given = []map[string]any{policy("ValidatingAdmissionPolicy", "owner.example.com"), policy("MutatingWebhookConfiguration", "hooks")}
	c.scenario.Spec.When = []scenario.Step{{Install: []map[string]any{policy("MutatingAdmissionPolicyBinding", "later")}}}
	got, err := substitute([]any{map[string]any{"$(policy.owner.example.com)/team": "blue"}, "$(policy.later)"}, c.lookup)
	want := []any{map[string]any{"at-x-00001-owner.example.com/team": "blue"}, "at-x-00001-later"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	for _, unknown := range []string{"$(policy.hooks)", "$(policy.owner)", "$(policy.)"} {
		if _, err := substitute(unknown, c.lookup); err == nil || !strings.Contains(err.Error(), "unknown placeholder "+unknown) {
			t.Errorf("%s: got error %v, want one that names it", unknown, err)
		}
	}
}

// A CustomResourceDefinition as it ships can have texts that look like placeholders. In other
// manifests an unknown placeholder is an error.
func TestSubstituteGiven(t *testing.T) {
	t.Parallel()
	c := caseOn(&fakeSandbox{})
	c.id = "at-x-00001"
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
