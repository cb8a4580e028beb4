package doctor

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/kinds"
)

// TestDefaultPlugins compares the plugins with the ones that kube-apiserver says it enables by default.
func TestDefaultPlugins(t *testing.T) {
	assets, err := binaries.Ensure(t.Context(), binaries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), assets.KubeAPIServer(), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`in addition to default enabled ones \(([^)]*)\)`).FindSubmatch(help)
	if found == nil {
		t.Fatal("kube-apiserver --help has no list of plugins that are enabled by default")
	}
	want, got := strings.Split(string(found[1]), ", "), defaultPlugins()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// After a refusal, no webhook is called: not of the plugins that follow, and no validating one, which come after all match conditions.
func TestWhyRefused(t *testing.T) {
	configuration := func(kind, name, condition string) map[string]any {
		webhook := map[string]any{"name": name + ".example.com", "rules": []any{ruleOf("CREATE", "", "secrets")}}
		if condition != "" {
			webhook["matchConditions"] = []any{map[string]any{"name": "a", "expression": condition}}
		}
		return named("admissionregistration.k8s.io/v1", kind+"WebhookConfiguration", name, map[string]any{"webhooks": []any{webhook}})
	}
	policy := func(expression, action string) []map[string]any {
		rule := map[string]any{"resourceRules": []any{ruleOf("CREATE", "", "secrets")}}
		return []map[string]any{
			named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "p", map[string]any{"spec": map[string]any{"matchConstraints": rule, "validations": []any{map[string]any{"expression": expression}}}}),
			named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "p", map[string]any{"spec": map[string]any{"policyName": "p", "validationActions": []any{action}}}),
		}
	}
	const fails, holds = "object.metadata.labels.x == 'y'", "true"
	for name, test := range map[string]struct {
		objects []map[string]any
		want    string
	}{
		"no error":             {[]map[string]any{configuration("Mutating", "a", holds), configuration("Validating", "b", holds)}, "called called"},
		"validating, the last": {[]map[string]any{configuration("Mutating", "a", ""), configuration("Validating", "b", ""), configuration("Validating", "c", fails)}, "called none refused"},
		"mutating, the second": {[]map[string]any{configuration("Mutating", "a", ""), configuration("Mutating", "b", fails), configuration("Mutating", "c", ""), configuration("Validating", "d", "")}, "called refused none none"},
		"a policy denies":      {append(policy("false", "Deny"), configuration("Mutating", "a", ""), configuration("Validating", "b", "")), "called invalid none"},
		"a policy warns":       {append(policy("false", "Warn"), configuration("Validating", "b", "")), "invalid called"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := named("v1", "Secret", "s", nil)
			answer, err := Why(t.Context(), Input{Cluster: &Snapshot{Resources: kinds.BuiltIn(), Objects: test.objects}}, Question{Object: secret})
			if err != nil {
				t.Fatal(err)
			}
			var effects []string
			for _, s := range answer.Steps {
				effects = append(effects, string(s.Effect))
				if s.Reason == reach.ReasonRefused && !strings.Contains(s.Text, "because of ") {
					t.Errorf("got %q", s.Text)
				}
			}
			if got := strings.Join(effects, " "); got != test.want {
				t.Errorf("got %q, want %q\n%s", got, test.want, answer.Text())
			}
		})
	}
}

// The object of a subresource is not the object to ask about.
func TestWhyParent(t *testing.T) {
	for kind, want := range map[[2]string]string{
		{"policy/v1", "Eviction"}:                    "give the Pod with --subresource eviction",
		{"v1", "Binding"}:                            "give the Pod with --subresource binding",
		{"authentication.k8s.io/v1", "TokenRequest"}: "give the ServiceAccount with --subresource token",
		{"autoscaling/v1", "Scale"}:                  "Deployment with --subresource scale, or the ReplicaSet with",
		{"v1", "PodExecOptions"}:                     "give the Pod with --subresource exec",
		{"example.com/v1", "Thing"}:                  "give its CustomResourceDefinition",
	} {
		if _, err := Why(t.Context(), Input{Manifests: around(t)}, Question{Object: named(kind[0], kind[1], "a", nil)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", kind[1], err, want)
		}
	}
}
