package reach_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// generator makes random configurations and requests.
type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// sometimes is true with a probability in per cent.
func (g generator) sometimes(percent int) bool { return g.IntN(100) < percent }

const crdGroup = "reach.example.com"

// sort of request that the test sends.
type sort struct {
	operation, group, version, resource, subresource string
	kind                                             schema.GroupVersionKind // in the URL
	body                                             schema.GroupVersionKind
	namespaced                                       bool
}

func (s sort) path() string {
	if s.subresource == "" {
		return s.resource
	}
	return s.resource + "/" + s.subresource
}

// sorts are the kinds of request, several versions of a kind among them.
func sorts() []sort {
	var all []sort
	add := func(group, version, resource, kind string, namespaced bool, operations ...string) {
		for _, operation := range operations {
			gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
			all = append(all, sort{operation: operation, group: group, version: version, resource: resource, kind: gvk, body: gvk, namespaced: namespaced})
		}
	}
	sub := func(subresource, operation string, body schema.GroupVersionKind) {
		last := all[len(all)-1]
		last.operation, last.subresource, last.body = operation, subresource, body
		all = append(all, last)
	}
	add("", "v1", "configmaps", "ConfigMap", true, "CREATE", "UPDATE", "DELETE")
	for _, version := range []string{"v1", "v2", "v3"} {
		add(crdGroup, version, "widgets", "Widget", true, "CREATE", "UPDATE", "DELETE")
		sub("status", "UPDATE", all[len(all)-1].kind)
	}
	add(crdGroup, "v1", "gadgets", "Gadget", false, "CREATE", "UPDATE", "DELETE")
	add("", "v1", "namespaces", "Namespace", false, "CREATE", "UPDATE", "DELETE")
	add("apps", "v1", "deployments", "Deployment", true, "UPDATE")
	sub("scale", "UPDATE", schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	add("", "v1", "services", "Service", true, "DELETE")
	sub("proxy", "CONNECT", schema.GroupVersionKind{Version: "v1", Kind: "ServiceProxyOptions"})
	add("", "v1", "events", "Event", true, "CREATE")
	add("events.k8s.io", "v1", "events", "Event", true, "CREATE")
	add("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false, "CREATE")
	add("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false, "CREATE")
	add("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false, "CREATE")
	return all
}

// rule returns a rule that matches a sort of request, except for parts that are random.
func (g generator) rule(names bool) map[string]any {
	s := pick(g, sorts()...)
	rule := map[string]any{
		"operations": []any{s.operation}, "apiGroups": []any{s.group}, "apiVersions": []any{s.version}, "resources": []any{s.path()},
	}
	if g.sometimes(50) {
		rule["operations"] = pick(g, []any{"*"}, []any{"*"}, []any{"CREATE", "UPDATE"}, []any{"DELETE"}, []any{"UPDATE", "CONNECT"})
	}
	if g.sometimes(60) {
		rule["apiGroups"] = pick(g, []any{"*"}, []any{"*"}, []any{"*"}, []any{"", crdGroup}, []any{"apps"}, []any{crdGroup})
	}
	if g.sometimes(40) {
		rule["apiVersions"] = pick(g, []any{"*"}, []any{"*"}, []any{"v1"}, []any{"v2"}, []any{"v2", "v3"}, []any{"v9"})
	}
	if g.sometimes(60) {
		rule["resources"] = pick(g, []any{"*"}, []any{"*"}, []any{"*/*"}, []any{"*/*"}, []any{"widgets/*"}, []any{"*/status"}, []any{"widgets", "widgets/status", "configmaps"}, []any{"gadgets", "namespaces"})
	}
	if g.sometimes(30) {
		rule["scope"] = pick(g, "*", "Namespaced", "Cluster")
	}
	if names && g.sometimes(25) {
		rule["resourceNames"] = pick(g, []any{"old-0"}, []any{"old-1", "new-1"}, []any{"new-0", "ns-1"})
	}
	return rule
}

func (g generator) rules(names bool) []any {
	rules := []any{g.rule(names)}
	for g.sometimes(40) {
		rules = append(rules, g.rule(names))
	}
	return rules
}

// selector returns nil or a selector for labels a and b, whose values are x and y.
func (g generator) selector() map[string]any {
	switch g.IntN(8) {
	case 0:
		return map[string]any{"matchLabels": map[string]any{"a": pick[any](g, "x", "y")}}
	case 1:
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": pick(g, "Exists", "DoesNotExist")}}}
	case 2:
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "b", "operator": pick(g, "In", "NotIn"), "values": []any{"x"}}}}
	default:
		return nil
	}
}

func (g generator) labels() map[string]any {
	labels := map[string]any{}
	for _, key := range []string{"a", "b"} {
		if g.sometimes(65) {
			labels[key] = pick[any](g, "x", "y")
		}
	}
	return labels
}

// expression returns a CEL expression that is true, false or an error.
func (g generator) expression() string {
	return pick(g, "true", "false",
		`request.operation == "CREATE"`,
		`request.kind.version == "v1"`,
		`request.resource.version != "v2"`,
		`has(object.metadata.labels) && "a" in object.metadata.labels`, // an error without an object
		`object.metadata.labels.a == "x"`,                              // an error without the label
		`oldObject == null || oldObject.metadata.name != "old-1"`,
		`request.namespace == "ns-1" || request.namespace == "ns-2"`, // an error for cluster-scoped resources
		`request.userInfo.username.endsWith("1")`,
		`object == null || !has(object.apiVersion) || object.apiVersion != "`+crdGroup+`/v3"`,
		`request.name != "old-0"`,
		`has(request.subResource) && request.subResource != ""`,
	)
}

func (g generator) conditions(percent int) []any {
	var conditions []any
	for g.sometimes(percent) && len(conditions) < 3 {
		conditions = append(conditions, map[string]any{"name": fmt.Sprint("c", len(conditions)), "expression": g.expression()})
	}
	return conditions
}

// match sets what a webhook and a policy have in common.
func (g generator) match(fields map[string]any) {
	setUnlessNil(fields, "namespaceSelector", g.selector())
	setUnlessNil(fields, "objectSelector", g.selector())
	if g.sometimes(60) {
		fields["matchPolicy"] = pick[any](g, "Exact", "Equivalent")
	}
}

func setUnlessNil(fields map[string]any, key string, value map[string]any) {
	if value != nil {
		fields[key] = value
	}
}

// matchResources returns random matchConstraints or matchResources.
func (g generator) matchResources() map[string]any {
	fields := map[string]any{"resourceRules": g.rules(true)}
	if g.sometimes(20) {
		fields["excludeResourceRules"] = g.rules(true)
	}
	g.match(fields)
	return fields
}

func manifest(kind, name string, fields map[string]any) map[string]any {
	fields["apiVersion"], fields["kind"], fields["metadata"] = "admissionregistration.k8s.io/v1", kind, map[string]any{"name": name}
	return fields
}

// webhook returns a webhook configuration with one webhook. Errors are ignored.
func (g generator) webhook(kind, name string) map[string]any {
	webhook := map[string]any{
		"name": name + ".example.com", "rules": g.rules(false), "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
	}
	g.match(webhook)
	if conditions := g.conditions(35); conditions != nil {
		webhook["matchConditions"] = conditions
	}
	return manifest(kind, name, map[string]any{"webhooks": []any{webhook}})
}

// validatingPolicy returns a policy that warns, and its bindings. Errors are ignored.
func (g generator) validatingPolicy(name string) []map[string]any {
	var validations []any
	if g.sometimes(70) {
		validations = append(validations, map[string]any{"expression": "false", "message": "m0"})
	}
	for len(validations) < 2 {
		validations = append(validations, map[string]any{"expression": g.expression(), "message": fmt.Sprint("m", len(validations))})
	}
	spec := map[string]any{"matchConstraints": g.matchResources(), "validations": validations, "failurePolicy": "Ignore"}
	if conditions := g.conditions(25); conditions != nil {
		spec["matchConditions"] = conditions
	}
	params := g.sometimes(40)
	if params {
		spec["paramKind"] = pick(g, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, map[string]any{"apiVersion": crdGroup + "/v1", "kind": "Gadget"})
	}
	all := []map[string]any{manifest("ValidatingAdmissionPolicy", name, map[string]any{"spec": spec})}
	for i := range 2 {
		binding := map[string]any{"policyName": name, "validationActions": []any{"Warn"}}
		if g.sometimes(50) {
			binding["matchResources"] = g.bindingMatch()
		}
		if params && g.sometimes(85) {
			ref := map[string]any{"parameterNotFoundAction": pick(g, "Allow", "Deny")}
			if g.sometimes(60) {
				ref["name"] = pick(g, "old-0", "old-1", "missing")
			} else {
				ref["selector"] = map[string]any{"matchLabels": map[string]any{"a": pick[any](g, "x", "y", "z")}}
			}
			binding["paramRef"] = ref
		}
		all = append(all, manifest("ValidatingAdmissionPolicyBinding", fmt.Sprint(name, "b", i), map[string]any{"spec": binding}))
	}
	return all
}

// bindingMatch returns matchResources that match often.
func (g generator) bindingMatch() map[string]any {
	fields := map[string]any{}
	g.match(fields)
	if g.sometimes(30) {
		fields["resourceRules"] = g.rules(true)
	}
	if g.sometimes(30) {
		fields["excludeResourceRules"] = g.rules(true)
	}
	return fields
}

// mutatingPolicy returns a policy that adds an annotation of its name to built-in objects, and its
// binding. Errors are ignored.
func (g generator) mutatingPolicy(name string) []map[string]any {
	constraints := map[string]any{}
	g.match(constraints)
	constraints["resourceRules"] = []any{map[string]any{
		"operations": pick(g, []any{"CREATE"}, []any{"CREATE", "UPDATE"}, []any{"*"}), "apiGroups": []any{pick[any](g, "", "apps")}, "apiVersions": []any{"*"},
		"resources": pick(g, []any{"configmaps"}, []any{"configmaps", "namespaces"}, []any{"configmaps", "services", "deployments"}, []any{"deployments"}),
	}}
	spec := map[string]any{
		"matchConstraints": constraints, "failurePolicy": "Ignore", "reinvocationPolicy": "Never",
		"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{
			"expression": `[JSONPatch{op: "add", path: "/metadata/annotations/` + name + `", value: "mutated"}]`,
		}}},
	}
	if conditions := g.conditions(40); conditions != nil {
		spec["matchConditions"] = conditions
	}
	binding := map[string]any{"policyName": name}
	if g.sometimes(50) {
		match := g.bindingMatch()
		for _, rules := range []string{"resourceRules", "excludeResourceRules"} {
			list, _ := match[rules].([]any)
			for _, rule := range list { // a mutating policy cannot have DELETE
				rule.(map[string]any)["operations"] = pick(g, []any{"*"}, []any{"CREATE"}, []any{"UPDATE"}) //nolint:forcetypeassert // made above
			}
		}
		binding["matchResources"] = match
	}
	return []map[string]any{
		manifest("MutatingAdmissionPolicy", name, map[string]any{"spec": spec}),
		manifest("MutatingAdmissionPolicyBinding", name+"b0", map[string]any{"spec": binding}),
	}
}

// refusers returns configurations that refuse requests with a label refuse, each for a value of its
// own: by an error of a match condition, because params are missing, or by a validation.
func refusers() []map[string]any {
	only := func(value string) map[string]any {
		return map[string]any{"matchLabels": map[string]any{"refuse": value}}
	}
	everything := []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}}}
	failing := []any{map[string]any{"name": "fails", "expression": "object.missing == 1"}}
	policy := func(name string, more map[string]any, binding map[string]any) []map[string]any {
		spec := map[string]any{
			"matchConstraints": map[string]any{"resourceRules": everything, "objectSelector": only(name)},
			"validations":      []any{map[string]any{"expression": "false", "message": "m0"}},
		}
		for key, value := range more {
			spec[key] = value
		}
		fields := map[string]any{"policyName": name, "validationActions": []any{"Deny"}}
		for key, value := range binding {
			fields[key] = value
		}
		return []map[string]any{
			manifest("ValidatingAdmissionPolicy", name, map[string]any{"spec": spec}),
			manifest("ValidatingAdmissionPolicyBinding", name+"b0", map[string]any{"spec": fields}),
		}
	}
	return slices.Concat(
		[]map[string]any{manifest("ValidatingWebhookConfiguration", "r0", map[string]any{"webhooks": []any{map[string]any{
			"name": "r0.example.com", "rules": everything, "objectSelector": only("r0"), "matchConditions": failing, "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		}}})},
		policy("r1", map[string]any{"matchConditions": failing}, nil),
		policy("r2", map[string]any{"paramKind": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
			map[string]any{"paramRef": map[string]any{"name": "missing", "parameterNotFoundAction": "Deny"}}),
		policy("r3", nil, nil),
		policy("r4", map[string]any{"validations": []any{map[string]any{"expression": "object.missing == 1"}}}, nil),
	)
}

// always returns configurations for the cases that a seed can lack: policies whose validation holds,
// that never find their params, whose rules are excluded, and whose error is ignored, and a webhook for
// the options of a connect.
func always() []map[string]any {
	configMaps := []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}}
	var all []map[string]any
	add := func(constraints, spec, binding map[string]any) {
		name := fmt.Sprint("y", len(all)/2)
		constraints["resourceRules"] = configMaps
		spec["matchConstraints"], spec["failurePolicy"] = constraints, "Ignore"
		binding["policyName"], binding["validationActions"] = name, []any{"Warn"}
		all = append(all, manifest("ValidatingAdmissionPolicy", name, map[string]any{"spec": spec}),
			manifest("ValidatingAdmissionPolicyBinding", name+"b0", map[string]any{"spec": binding}))
	}
	validation := func(expression string) map[string]any {
		return map[string]any{"validations": []any{map[string]any{"expression": expression}}}
	}
	add(map[string]any{}, validation("true"), map[string]any{})
	withParams := validation("false")
	withParams["paramKind"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	add(map[string]any{}, withParams, map[string]any{"paramRef": map[string]any{"name": "missing", "parameterNotFoundAction": "Allow"}})
	add(map[string]any{"excludeResourceRules": configMaps}, validation("false"), map[string]any{})
	add(map[string]any{}, validation("object.missing == 1"), map[string]any{})
	// The options of a connect have no labels, not even none.
	return append(all, manifest("ValidatingWebhookConfiguration", "y4", map[string]any{"webhooks": []any{map[string]any{
		"name": "y4.example.com", "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"rules":          []any{map[string]any{"operations": []any{"CONNECT"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"services/proxy"}}},
		"objectSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "DoesNotExist"}}},
	}}}))
}

// unbound returns a policy without a binding, and a binding without a policy.
func unbound() []map[string]any {
	all := generator{rand.New(rand.NewPCG(0, 0))}.validatingPolicy("u0") //nolint:gosec // no secret
	all[1]["spec"].(map[string]any)["policyName"] = "u1"                 //nolint:forcetypeassert // made above
	return all[:2]
}

// request returns a random request of the user with that number, and its sort. Old returns stored
// objects.
func (g generator) request(number int, old func(kind schema.GroupVersionKind, namespace, name string) map[string]any) (sort, reach.Request) {
	s := pick(g, sorts()...)
	r := reach.Request{
		Operation: s.operation, Kind: s.body, Subresource: s.subresource, DryRun: s.operation != "CONNECT" && s.resource != "tokenreviews",
		Resource: schema.GroupVersionResource{Group: s.group, Version: s.version, Resource: s.resource},
		User:     framework.User{Name: fmt.Sprint("user-", number), Groups: []string{"system:masters", "system:authenticated"}},
	}
	if s.namespaced {
		r.Namespace = fmt.Sprint("ns-", g.IntN(4))
	}
	object := unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(s.body)
	metadata := map[string]any{"labels": g.labels(), "annotations": map[string]any{"k": "v"}}
	object.Object["metadata"] = metadata
	if g.sometimes(25) {
		metadata["labels"].(map[string]any)["refuse"] = fmt.Sprint("r", g.IntN(5)) //nolint:forcetypeassert // made above
	}
	switch s.operation {
	case "CREATE":
		r.Name = fmt.Sprint("new-", g.IntN(3))
		if s.resource == "configmaps" && g.sometimes(20) {
			r.Name = ""
			object.SetGenerateName("new-")
		}
	case "CONNECT":
		r.Name, r.Object = "old-0", map[string]any{"apiVersion": "v1", "kind": "ServiceProxyOptions"}
		return s, r
	default:
		r.Name = fmt.Sprint("old-", g.IntN(2))
		if s.resource == "namespaces" {
			r.Name = fmt.Sprint("ns-", g.IntN(4))
		}
		if s.resource == "deployments" || s.resource == "services" {
			r.Name = "old-0"
		}
		r.OldObject = old(s.kind, r.Namespace, r.Name)
		stored := unstructured.Unstructured{Object: r.OldObject}
		object.SetResourceVersion(stored.GetResourceVersion())
		switch s.subresource {
		case "status": // it does not change labels
			object.SetLabels(stored.GetLabels())
		case "scale": // it has no labels
			object.SetLabels(nil)
			r.OldObject = map[string]any{
				"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": r.Name, "namespace": r.Namespace},
			}
		}
	}
	if s.operation == "DELETE" {
		return s, r
	}
	object.SetName(r.Name)
	object.SetNamespace(r.Namespace)
	fill(object.Object, s, r)
	r.Object = object.Object
	return s, r
}

// fill sets the fields that a kind requires.
func fill(object map[string]any, s sort, r reach.Request) {
	switch s.body.Kind {
	case "Event":
		regarding := "involvedObject"
		if s.group != "" {
			regarding = "regarding"
			object["eventTime"], object["reportingController"], object["reportingInstance"] = "2026-01-01T00:00:00.000000Z", "example.com/reach", "one"
			object["action"], object["reason"], object["type"] = "Test", "Test", "Normal"
		}
		object[regarding] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": r.Namespace}
	case "Scale":
		object["spec"] = map[string]any{"replicas": int64(2)}
	case "TokenReview":
		object["spec"] = map[string]any{"token": "none"}
	case "ValidatingAdmissionPolicyBinding":
		object["spec"] = map[string]any{"policyName": "none", "validationActions": []any{"Deny"}}
	case "Deployment":
		object["spec"] = r.OldObject["spec"]
	}
}
