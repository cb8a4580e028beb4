package reach_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// The type check finds fields and types that the schema of the API server does not have, in each expression of
// a policy, and nothing in expressions that are right.
func TestTypeCheck(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	policy := func(name, version string, resources []any, spec map[string]any) map[string]any {
		spec["matchConstraints"] = map[string]any{"resourceRules": []any{map[string]any{"apiGroups": []any{"apps"}, "apiVersions": []any{version}, "operations": []any{"*"}, "resources": resources}}}
		return map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": name}, "spec": spec}
	}
	deployments := []any{"deployments", "deployments/status"}
	expression := func(text string) map[string]any { return map[string]any{"name": "a", "expression": text} }
	admission, err := reach.New([]map[string]any{
		policy("right", "v1", deployments, map[string]any{
			"paramKind":       map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
			"matchConditions": []any{expression("object.metadata.name != oldObject.metadata.name")},
			"variables":       []any{expression("object.spec.replicas")},
			"validations":     []any{map[string]any{"expression": "variables.a < 5 && params.data.x == request.name", "messageExpression": "'got ' + string(variables.a)"}},
		}),
		policy("quantity", "v1", deployments, map[string]any{"validations": []any{
			map[string]any{"expression": "object.spec.template.spec.containers.all(c, quantity(c.resources.requests['cpu']).isLessThan(quantity('2')))"},
			map[string]any{"expression": "authorizer.requestResource.check('create').allowed()"},
			map[string]any{"expression": "has(object.spec.template.spec.containers[0].resources.requsts)"},
		}}),
		policy("wrong", "v1", deployments, map[string]any{
			"matchConditions":  []any{expression("has(object.spek)")},
			"validations":      []any{map[string]any{"expression": "object.spec.replicas == 'x'", "messageExpression": "object.metadata.nme"}},
			"auditAnnotations": []any{map[string]any{"key": "a", "valueExpression": "object.kind.x"}},
		}),
		policy("variable", "v1", deployments, map[string]any{
			"variables":   []any{expression("object.spec.replcas")},
			"validations": []any{map[string]any{"expression": "variables.a < 5"}},
		}),
		policy("several", "v1", []any{"deployments", "daemonsets"}, map[string]any{"validations": []any{
			map[string]any{"expression": "!has(object.spec.replicas) || object.spec.replicas > 0"}, map[string]any{"expression": "has(object.spec.replcas)"},
		}}),
		policy("wildcard", "v1", []any{"*"}, map[string]any{"validations": []any{map[string]any{"expression": "has(object.spec.replcas)"}}}),
		policy("older", "v1beta1", deployments, map[string]any{"validations": []any{map[string]any{"expression": "object.spec.rollbackTo == null"}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var checker reach.TypeChecker
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	of := reach.Checked{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resources: reach.NewMapper(lists), Client: client}
	for range 2 { // the second time from the results that are kept
		warnings, err := checker.Check(admission, of)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range warnings {
			_, text, _ := strings.Cut(w.Text, "ERROR: ")
			text, _, _ = strings.Cut(text, "\n")
			got = append(got, strings.Join([]string{w.Name, w.Field, text}, " "))
		}
		want := []string{
			"quantity spec.validations[2].expression <input>:1:4: undefined field 'requsts'",
			"wrong spec.matchConditions[0].expression <input>:1:4: undefined field 'spek'",
			"wrong spec.validations[0].expression <input>:1:22: found no matching overload for '_==_' applied to '(int, string)'",
			"wrong spec.validations[0].messageExpression <input>:1:16: undefined field 'nme'",
			"wrong spec.auditAnnotations[0].valueExpression <input>:1:12: type 'string' does not support field selection",
			"variable spec.variables[0].expression <input>:1:12: undefined field 'replcas'",
			"several spec.validations[1].expression <input>:1:4: undefined field 'replcas'",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}
	of.Kind.Kind = "DaemonSet"
	if warnings, err := checker.Check(admission, of); err != nil || len(warnings) != 1 || warnings[0].Name != "several" || warnings[0].Object != of.Kind {
		t.Errorf("another kind of a rule: got %v, %v", warnings, err)
	}
	of.Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	if warnings, err := checker.Check(admission, of); err != nil || len(warnings) > 0 {
		t.Errorf("a kind that no rule has: got %v, %v", warnings, err)
	}
}
