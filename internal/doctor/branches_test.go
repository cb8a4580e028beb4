package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// around are the objects of a project that breaks no rule, without its configuration.
func around(t *testing.T) []shipped.Manifest {
	t.Helper()
	project, err := shipped.Read("testdata/cf-match-3/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return project.Manifests[1:]
}

// webhookWith returns a configuration with a sound webhook and a change.
func webhookWith(kind string, change func(webhook map[string]any)) shipped.Manifest {
	webhook := map[string]any{
		"name": "guard.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(5), "failurePolicy": "Fail",
		"clientConfig": map[string]any{"service": map[string]any{"namespace": "guard-system", "name": "guard"}},
		"rules":        []any{ruleOf("CREATE", "example.com", "widgets")},
	}
	change(webhook)
	return shipped.Manifest{File: "webhook.yaml", Line: 1, Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration",
		"metadata": map[string]any{"name": "guard", "annotations": map[string]any{"cert-manager.io/inject-ca-from": "a/b"}}, "webhooks": []any{webhook},
	}}
}

// ruleOf returns a rule with one group, and lists that have spaces.
func ruleOf(operations, group, resources string) map[string]any {
	list := func(text string) (all []any) {
		for _, each := range strings.Fields(text) {
			all = append(all, each)
		}
		return all
	}
	return map[string]any{"operations": list(operations), "apiGroups": []any{group}, "apiVersions": []any{"v1"}, "resources": list(resources)}
}

func found(t *testing.T, id string, manifests ...shipped.Manifest) string {
	t.Helper()
	report, err := Judge(t.Context(), Input{Manifests: manifests, Only: []string{id}, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range report.Findings {
		lines = append(lines, fmt.Sprintf("%s %s: %s", f.Severity, f.Field, f.Message))
	}
	return strings.Join(lines, "\n")
}

// Each way in which a rule can be dead, and what is not.
func TestDeadRules(t *testing.T) {
	for name, test := range map[string]struct {
		rule map[string]any
		want string // a part of the only finding; empty means none
	}{
		"sound":                    {ruleOf("CREATE UPDATE DELETE", "example.com", "widgets"), ""},
		"kind":                     {ruleOf("CREATE", "", "Pod"), `error webhooks[0].rules[0].resources[0]: "Pod" is no resource but a kind or another name of pods`},
		"singular":                 {ruleOf("CREATE", "apps", "deployment"), `another name of deployments`},
		"short name":               {ruleOf("CREATE", "example.com", "wd"), `another name of widgets`},
		"upper case":               {ruleOf("CREATE", "other.example.com", "Others"), "lower case"},
		"group of its kind":        {ruleOf("UPDATE", "autoscaling", "deployments/scale"), `is a subresource of the group "apps"`},
		"exec without CONNECT":     {ruleOf("CREATE", "", "pods/exec"), "error webhooks[0].rules[0].resources[0]: there are no requests for pods/exec"},
		"exec with CONNECT":        {ruleOf("CONNECT", "", "pods/exec"), ""},
		"CONNECT to Pods":          {ruleOf("CONNECT", "", "pods"), "there are no requests for pods with the operations CONNECT"},
		"scale with CREATE":        {ruleOf("CREATE", "apps", "deployments/scale"), "no requests for deployments/scale"},
		"eviction with UPDATE":     {ruleOf("UPDATE", "", "pods/eviction"), "no requests for pods/eviction"},
		"one of two":               {ruleOf("UPDATE", "", "pods pods/eviction"), "warning webhooks[0].rules[0].resources[1]: there are no requests for pods/eviction"},
		"part of a group":          {ruleOf("CREATE", "*.example.com", "widgets"), "matches no group"},
		"part of a resource":       {ruleOf("CREATE", "example.com", "widg*"), "matches no resource"},
		"everything":               {ruleOf("*", "*", "*/*"), ""},
		"exempt":                   {ruleOf("CREATE", "admissionregistration.k8s.io", "validatingwebhookconfigurations"), "Kubernetes never calls webhooks for"},
		"not served":               {ruleOf("CREATE", "apps", "nothings"), `note webhooks[0].rules[0].resources[0]: the API server does not serve nothings`},
		"not in the files":         {ruleOf("CREATE", "other.example.com", "others"), ""},
		"all subresources of Pods": {ruleOf("*", "", "pods/*"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := found(t, "CF-MATCH-3", append(around(t), webhookWith("Validating", func(w map[string]any) { w["rules"] = []any{test.rule} }))...)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for scope, want := range map[string]string{"Namespaced": "", "Cluster": "scope is Cluster, which widgets does not have", "*": ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			scoped := ruleOf("CREATE", "example.com", "widgets")
			scoped["scope"] = scope
			got := found(t, "CF-MATCH-3", append(around(t), webhookWith("Validating", func(w map[string]any) { w["rules"] = []any{scoped} }))...)
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Each way in which a selector is a way out, or a dead end.
func TestSelectors(t *testing.T) {
	expression := func(key, operator string, values ...any) map[string]any {
		one := map[string]any{"key": key, "operator": operator}
		if len(values) > 0 {
			one["values"] = values
		}
		return map[string]any{"matchExpressions": []any{one}}
	}
	for name, test := range map[string]struct {
		id, kind, field string
		selector        map[string]any
		rule            map[string]any
		want            string
	}{
		"out by a label":        {"CF-MATCH-5", "Validating", "objectSelector", expression("skip", "DoesNotExist"), nil, "warning webhooks[0].objectSelector: whoever creates an object can avoid"},
		"out by a value":        {"CF-MATCH-5", "Validating", "objectSelector", expression("skip", "NotIn", "yes"), nil, "can avoid the webhook"},
		"opt in":                {"CF-MATCH-5", "Validating", "objectSelector", expression("check", "Exists"), nil, "note webhooks[0].objectSelector: objects opt in"},
		"mutating":              {"CF-MATCH-5", "Mutating", "objectSelector", expression("skip", "DoesNotExist"), nil, ""},
		"no labels":             {"CF-MATCH-5", "Mutating", "objectSelector", expression("check", "Exists"), ruleOf("CONNECT", "", "pods/exec"), "the object of such a request has no labels"},
		"no labels, evictions":  {"CF-MATCH-5", "Mutating", "objectSelector", expression("check", "Exists"), ruleOf("CREATE", "", "pods pods/eviction"), "the object of such a request has no labels"},
		"no labels, scale":      {"CF-MATCH-5", "Mutating", "objectSelector", expression("check", "Exists"), ruleOf("UPDATE", "apps", "deployments/scale"), "the object of such a request has no labels"},
		"labels of Pods":        {"CF-MATCH-5", "Mutating", "objectSelector", expression("check", "Exists"), ruleOf("UPDATE", "", "pods pods/status"), ""},
		"namespaces by a label": {"CF-MATCH-6", "Validating", "namespaceSelector", expression("skip", "DoesNotExist"), nil, "whoever may edit a namespace can turn the webhook off"},
		"namespaces by name":    {"CF-MATCH-6", "Validating", "namespaceSelector", expression(nameLabel, "NotIn", "kube-system"), nil, ""},
		"namespaces, mutating":  {"CF-MATCH-6", "Mutating", "namespaceSelector", expression("skip", "DoesNotExist"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := found(t, test.id, append(around(t), webhookWith(test.kind, func(w map[string]any) {
				if w[test.field] = test.selector; test.rule != nil {
					w["rules"] = []any{test.rule}
				}
			}))...)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A cluster knows its namespaces: a selector that matches none is found.
func TestSelectorsOnCluster(t *testing.T) {
	judge := func(labels map[string]any) string {
		namespace := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName("a")
		namespace.SetLabels(map[string]string{nameLabel: "a", "example.com/team": "blue"})
		configuration := webhookWith("Validating", func(w map[string]any) { w["namespaceSelector"] = map[string]any{"matchLabels": labels} })
		snapshot := &Snapshot{Minor: 36, Resources: kinds.BuiltIn(), Objects: []map[string]any{namespace.Object, configuration.Object}}
		report, err := Judge(t.Context(), Input{Cluster: snapshot, Only: []string{"CF-MATCH-6"}})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range report.Findings {
			lines = append(lines, f.Message)
		}
		return strings.Join(lines, "\n")
	}
	if got := judge(map[string]any{"example.com/team": "blue"}); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if got := judge(map[string]any{"example.com/team": "red"}); !strings.Contains(got, "no namespace matches") {
		t.Errorf("got %q", got)
	}
}

// What serves a webhook: replicas, an autoscaler, a DaemonSet, and budgets with each form of selector.
func TestReplicas(t *testing.T) {
	find := func(manifests []shipped.Manifest, kind string) int {
		for i, m := range manifests {
			if m.Object["kind"] == kind {
				return i
			}
		}
		t.Fatalf("there is no %s", kind)
		return 0
	}
	set := func(kind string, value any, path ...string) func([]shipped.Manifest) []shipped.Manifest {
		return func(all []shipped.Manifest) []shipped.Manifest {
			if err := unstructured.SetNestedField(all[find(all, kind)].Object, value, path...); err != nil {
				t.Fatal(err)
			}
			return all
		}
	}
	const budget = "PodDisruptionBudget"
	for name, test := range map[string]struct {
		change func([]shipped.Manifest) []shipped.Manifest
		want   string
	}{
		"sound":       {func(all []shipped.Manifest) []shipped.Manifest { return all }, ""},
		"one replica": {set("Deployment", int64(1), "spec", "replicas"), "has 1 replica(s)"},
		"autoscaler": {func(all []shipped.Manifest) []shipped.Manifest {
			return append(all, shipped.Manifest{Object: map[string]any{
				"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "guard", "namespace": "guard-system"},
				"spec": map[string]any{"minReplicas": int64(1), "scaleTargetRef": map[string]any{"kind": "Deployment", "name": "guard"}},
			}})
		}, "has 1 replica(s)"},
		"DaemonSet": {func(all []shipped.Manifest) []shipped.Manifest {
			at := find(all, "Deployment")
			unstructured.RemoveNestedField(all[at].Object, "spec", "replicas")
			all[at].Object["kind"] = "DaemonSet"
			return all
		}, ""},
		"no budget": {func(all []shipped.Manifest) []shipped.Manifest {
			at := find(all, budget)
			return append(all[:at:at], all[at+1:]...)
		}, "no PodDisruptionBudget selects"},
		"budget of others":        {set(budget, map[string]any{"matchLabels": map[string]any{"app": "other"}}, "spec", "selector"), "no PodDisruptionBudget selects"},
		"budget by an expression": {set(budget, map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "In", "values": []any{"guard"}}}}, "spec", "selector"), ""},
		"budget without selector": {set(budget, map[string]any{}, "spec", "selector"), "no PodDisruptionBudget selects"},
		"no disruption":           {set(budget, map[string]any{"disruptionsAllowed": int64(0), "currentHealthy": int64(2)}, "status"), "allows no disruption"},
		"too few are healthy":     {set(budget, map[string]any{"disruptionsAllowed": int64(0), "currentHealthy": int64(1)}, "status"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := found(t, "CF-BLOCK-10", append(test.change(around(t)), webhookWith("Validating", func(map[string]any) {}))...)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
