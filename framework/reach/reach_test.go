package reach_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// server is a reach.Cluster with fixed answers.
type server struct {
	runtime.EquivalentResourceMapper
	namespaces map[string]map[string]any
	params     map[schema.GroupVersionKind]reach.Params
	convertErr error
}

func (s server) Namespace(_ context.Context, name string) (map[string]any, error) {
	return s.namespaces[name], nil
}

func (s server) Params(_ context.Context, kind schema.GroupVersionKind) (reach.Params, error) {
	return s.params[kind], nil
}

func (s server) Convert(_ context.Context, object map[string]any, kind schema.GroupVersionKind) (map[string]any, error) {
	if s.convertErr != nil {
		return nil, s.convertErr
	}
	out := maps.Clone(object)
	out["apiVersion"] = kind.GroupVersion().String()
	return out, nil
}

// testServer serves config maps, and widgets in versions v1 and v2. It has namespace a, with label
// team=red, and ConfigMap params in it.
func testServer() server {
	mapper := runtime.NewEquivalentResourceRegistry()
	for _, version := range []string{"v1", "v2"} {
		widgets := schema.GroupVersion{Group: "example.com", Version: version}
		mapper.RegisterKindFor(widgets.WithResource("widgets"), "", widgets.WithKind("Widget"))
	}
	return server{
		EquivalentResourceMapper: mapper,
		namespaces:               map[string]map[string]any{"a": namespaceWith("a", map[string]any{"team": "red"})},
		params: map[schema.GroupVersionKind]reach.Params{
			{Version: "v1", Kind: "ConfigMap"}: {Served: true, Namespaced: true, Objects: []map[string]any{{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "limits", "namespace": "a"}, "data": map[string]any{"owner": "nobody"},
			}}},
		},
	}
}

func namespaceWith(name string, labels map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}}
}

// createWidget is the request of the tests.
func createWidget() reach.Request {
	return reach.Request{
		Operation: "CREATE",
		Resource:  schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		Kind:      schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Namespace: "a", Name: "w", User: framework.User{Name: "ann"},
		Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w", "namespace": "a", "labels": map[string]any{"color": "green"}},
			"spec":     map[string]any{"owner": "ann"},
		},
	}
}

// webhookWith is a configuration with one webhook, as YAML.
func webhookWith(fields string) string {
	return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: c}
webhooks: [{name: w.example.com, ` + fields + `}]`
}

// rule matches createWidget.
const rule = `operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]`

// policyWith is a policy and its binding, as YAML.
func mutationsWith(failurePolicy, mutations string) string {
	return strings.ReplaceAll(policyWith(failurePolicy+", mutations: ["+mutations+"]", ""), "Validating", "Mutating")
}

func policyWith(spec, binding string) string {
	return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {matchConstraints: {resourceRules: [{` + rule + `}]}, ` + spec + `}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny], ` + binding + `}`
}

// manifests reads YAML documents.
func manifests(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, document := range strings.Split(text, "\n---\n") {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(document), &fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, fields)
	}
	return all
}

// findingOf returns the only Finding.
func findingOf(t *testing.T, text string, request reach.Request, cluster reach.Cluster) reach.Finding {
	t.Helper()
	admission, err := reach.New(manifests(t, text))
	if err != nil {
		t.Fatal(err)
	}
	findings, err := admission.Explain(t.Context(), request, cluster)
	if err != nil || len(findings) != 1 {
		t.Fatalf("got %v, %v, want one finding", findings, err)
	}
	return findings[0]
}

func TestExplain(t *testing.T) {
	type change = func(*reach.Request, *server)
	const always = `validations: [{expression: "true"}]`
	for name, test := range map[string]struct {
		manifests string
		change    change
		effect    reach.Effect
		reason    reach.Reason
		text      string
	}{
		"called":                           {webhookWith(`rules: [{` + rule + `}]`), nil, reach.EffectCalled, "", "it is called"},
		"no rules":                         {webhookWith(`rules: []`), nil, reach.EffectNone, reach.ReasonResource, "it is not called: it has no rules"},
		"group":                            {webhookWith(`rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [widgets]}]`), nil, reach.EffectNone, reach.ReasonGroup, `it is not called: the rule has apiGroups "", the request has "example.com"`},
		"resource":                         {webhookWith(`rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [gadgets, cogs]}]`), nil, reach.EffectNone, reach.ReasonResource, `it is not called: the rule has resources gadgets, cogs, the request has widgets`},
		"subresource":                      {webhookWith(`rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets/status]}]`), nil, reach.EffectNone, reach.ReasonSubresource, `it is not called: the rule has resources widgets/status, the request has widgets`},
		"version":                          {webhookWith(`rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v3], resources: [widgets]}]`), nil, reach.EffectNone, reach.ReasonVersion, `it is not called: the rule has apiVersions v3, the request has v1`},
		"another version":                  {webhookWith(`rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v2], resources: [widgets]}]`), nil, reach.EffectCalled, "", "it is called"},
		"match policy":                     {webhookWith(`matchPolicy: Exact, rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v2], resources: [widgets]}]`), nil, reach.EffectNone, reach.ReasonMatchPolicy, `it is not called: matchPolicy is Exact, the rules have example.com/v2, the request is for example.com/v1`},
		"operation of the closest rule":    {webhookWith(`rules: [{operations: [UPDATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}, {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`), nil, reach.EffectNone, reach.ReasonOperation, `it is not called: the rule that matches best has operations UPDATE, the request has CREATE`},
		"scope":                            {webhookWith(`rules: [{scope: Cluster, ` + rule + `}]`), nil, reach.EffectNone, reach.ReasonScope, `it is not called: the rule has scope Cluster, the request has a namespaced resource`},
		"namespaceSelector, another value": {webhookWith(`namespaceSelector: {matchLabels: {team: blue}}, rules: [{` + rule + `}]`), nil, reach.EffectNone, reach.ReasonNamespaceSelector, `it is not called: the namespaceSelector does not match namespace "a": label "team" is "red", want "blue"`},
		"namespaceSelector, missing":       {webhookWith(`namespaceSelector: {matchExpressions: [{key: env, operator: Exists}]}, rules: [{` + rule + `}]`), nil, reach.EffectNone, reach.ReasonNamespaceSelector, `it is not called: the namespaceSelector does not match namespace "a": label "env" is missing`},
		"namespaceSelector, excluded":      {webhookWith(`namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [red]}]}, rules: [{` + rule + `}]`), nil, reach.EffectNone, reach.ReasonNamespaceSelector, `it is not called: the namespaceSelector does not match namespace "a": label "team" is "red", want another value`},
		"namespaceSelector, not wanted":    {webhookWith(`namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}, rules: [{` + rule + `}]`), nil, reach.EffectNone, reach.ReasonNamespaceSelector, `it is not called: the namespaceSelector does not match namespace "a": label "team" is "red", want no such label`},
		"namespace does not exist":         {webhookWith(`namespaceSelector: {matchLabels: {team: red}}, rules: [{` + rule + `}]`), func(r *reach.Request, _ *server) { r.Namespace = "b" }, reach.EffectRefused, "", `the request is refused because of an error, and failurePolicy is Fail: namespaces "b" not found`},
		"objectSelector":                   {webhookWith(`objectSelector: {matchLabels: {color: blue}}, rules: [{` + rule + `}]`), nil, reach.EffectNone, reach.ReasonObjectSelector, `it is not called: the objectSelector does not match the object: label "color" is "green", want "blue"`},
		"objectSelector of an update":      {webhookWith(`objectSelector: {matchLabels: {color: blue}}, rules: [{operations: ["*"], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]`), func(r *reach.Request, _ *server) { r.Operation, r.OldObject = "UPDATE", map[string]any{} }, reach.EffectNone, reach.ReasonObjectSelector, `it is not called: the objectSelector does not match the object: label "color" is "green", want "blue"; nor the old object: label "color" is missing, want "blue"`},
		"namespace that is not known": {webhookWith(`namespaceSelector: {matchLabels: {team: blue}}, rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [namespaces]}]`), func(r *reach.Request, _ *server) {
			r.Operation, r.Resource, r.Kind = "UPDATE", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
			r.Name, r.Namespace, r.Object, r.NotKnown = "a", "", nil, "nothing shows it"
		}, reach.EffectUnknown, "", "the namespace is not known, whose labels the namespaceSelector compares: nothing shows it"},
		"objectSelector without labels":      {webhookWith(`objectSelector: {matchLabels: {color: blue}}, rules: [{` + rule + `}]`), func(r *reach.Request, _ *server) { delete(r.Object["metadata"].(map[string]any), "labels") }, reach.EffectNone, reach.ReasonObjectSelector, `it is not called: the Widget has no labels, so the objectSelector does not match: label "color" is missing, want "blue"`},
		"objectSelector of a connect":        {webhookWith(`objectSelector: {matchExpressions: [{key: color, operator: DoesNotExist}]}, rules: [{operations: ["*"], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]`), func(r *reach.Request, _ *server) { r.Operation, r.Object = "CONNECT", map[string]any{} }, reach.EffectNone, reach.ReasonObjectSelector, "the options of a connect request have no metadata, so no objectSelector matches them"},
		"objectSelector, object not known":   {webhookWith(`objectSelector: {matchLabels: {color: blue}}, rules: [{` + rule + `}]`), func(r *reach.Request, _ *server) { r.Object, r.NotKnown = nil, "it was not sent" }, reach.EffectUnknown, "", `it is not known whether it decides: the object is not known, which the objectSelector compares: it was not sent`},
		"match condition":                    {webhookWith(`rules: [{` + rule + `}], matchConditions: [{name: bobs, expression: 'request.userInfo.username == "bob"'}]`), nil, reach.EffectNone, reach.ReasonMatchCondition, `it is not called: match condition "bobs" is false: request.userInfo.username == "bob"`},
		"match condition in another version": {webhookWith(`rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v2], resources: [widgets]}], matchConditions: [{name: v2, expression: 'object.apiVersion == "example.com/v2"'}]`), nil, reach.EffectCalled, "", "it is called"},
		"match condition, not convertible":   {webhookWith(`rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v2], resources: [widgets]}], matchConditions: [{name: v2, expression: 'true'}]`), func(_ *reach.Request, s *server) { s.convertErr = errors.New("no conversion") }, reach.EffectUnknown, "", "no conversion"},
		"match condition error":              {webhookWith(`rules: [{` + rule + `}], matchConditions: [{name: x, expression: object.spec.x == 1}]`), nil, reach.EffectRefused, "", `no such key: x`},
		"match condition error ignored":      {webhookWith(`failurePolicy: Ignore, rules: [{` + rule + `}], matchConditions: [{name: x, expression: object.spec.x == 1}]`), nil, reach.EffectNone, reach.ReasonErrorIgnored, `an error is ignored, because failurePolicy is Ignore: match condition`},
		"authorizer":                         {webhookWith(`rules: [{` + rule + `}], matchConditions: [{name: x, expression: 'authorizer.group("").resource("pods").check("get").allowed()'}]`), nil, reach.EffectUnknown, "", "authorizer"},
		"not compiled":                       {webhookWith(`rules: [{` + rule + `}], matchConditions: [{name: x, expression: 'newInALaterVersion(object)'}]`), nil, reach.EffectUnknown, "", "cannot compile"},
		"exempt webhook": {webhookWith(`rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]`), func(r *reach.Request, _ *server) {
			r.Kind = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}
		}, reach.EffectNone, reach.ReasonExempt, "Kubernetes exempts ValidatingAdmissionPolicy"},

		"webhook for reviews": {webhookWith(`rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]`), func(r *reach.Request, _ *server) {
			r.Resource = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
		}, reach.EffectNone, reach.ReasonExempt, "Kubernetes exempts tokenreviews from webhooks since 1.37"},
		"webhook for reviews before 1.37": {webhookWith(`rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]`), func(r *reach.Request, _ *server) {
			r.Resource = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
			r.WebhooksForReviews = true
		}, reach.EffectCalled, "", "it is called"},

		"policy":                   {policyWith(`validations: [{expression: "object.spec.owner == 'bob'"}]`, ""), nil, reach.EffectInvalid, "", `validations[0] is false: object.spec.owner == 'bob' (validationActions Deny)`},
		"valid":                    {policyWith(`validations: [{expression: "object.spec.owner == 'ann'"}]`, ""), nil, reach.EffectNone, reach.ReasonValid, `its validation is true: object.spec.owner == 'ann'`},
		"variables":                {policyWith(`variables: [{name: o, expression: object.spec.owner}], validations: [{expression: "variables.o == 'bob'"}, {expression: "namespaceObject.metadata.labels.team == 'red'"}]`, ""), nil, reach.EffectInvalid, "", `validations[0] is false`},
		"validation error":         {policyWith(`validations: [{expression: "object.spec.x == 1"}]`, ""), nil, reach.EffectInvalid, "", `validations[0] fails with an error`},
		"validation error ignored": {policyWith(`failurePolicy: Ignore, validations: [{expression: "object.spec.x == 1"}]`, ""), nil, reach.EffectNone, reach.ReasonErrorIgnored, `validations[0]: `},
		"what its own mutation made false": {strings.ReplaceAll(policyWith(`matchConditions: [{name: not-yet, expression: "!has(object.metadata.labels)"}], validations: []`, ""), "Validating", "Mutating"), func(r *reach.Request, _ *server) {
			r.Sent = map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}
		}, reach.EffectMutates, "", "its mutations are evaluated"},
		"match condition of a policy": {policyWith(`matchConditions: [{name: never, expression: "false"}], `+always, ""), nil, reach.EffectNone, reach.ReasonMatchCondition, `it does not apply: match condition "never" is false: false`},
		"matchResources":              {policyWith(always, `matchResources: {namespaceSelector: {matchLabels: {team: blue}}}`), nil, reach.EffectNone, reach.ReasonBindingMatch, `it does not apply: matchResources of the binding: the namespaceSelector does not match namespace "a": label "team" is "red", want "blue"`},
		"excluded":                    {policyWith(always, `matchResources: {excludeResourceRules: [{`+rule+`, resourceNames: [w]}]}`), nil, reach.EffectNone, reach.ReasonBindingMatch, `excludeResourceRules match the request`},
		"resource name":               {policyWith(always, `matchResources: {resourceRules: [{`+rule+`, resourceNames: [x, z]}]}`), nil, reach.EffectNone, reach.ReasonBindingMatch, `the rule has resourceNames x, z, the request has "w"`},
		"params":                      {policyWith(`paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: params.data.owner == object.spec.owner}]`, `paramRef: {name: limits, parameterNotFoundAction: Deny}`), nil, reach.EffectInvalid, "", `validations[0] is false`},
		"no params":                   {policyWith(`paramKind: {apiVersion: v1, kind: ConfigMap}, `+always, `paramRef: {name: other, parameterNotFoundAction: Allow}`), nil, reach.EffectNone, reach.ReasonNoParams, `no params were found, and parameterNotFoundAction is Allow`},
		"no params denied":            {policyWith(`paramKind: {apiVersion: v1, kind: ConfigMap}, `+always, `paramRef: {selector: {matchLabels: {a: b}}, parameterNotFoundAction: Deny}`), nil, reach.EffectRefused, "", `no params found for policy binding with`},
		"params not served":           {policyWith(`paramKind: {apiVersion: v1, kind: Unknown}, `+always, `paramRef: {name: other, parameterNotFoundAction: Allow}`), nil, reach.EffectRefused, "", `does not serve the paramKind, v1 Unknown`},
		"exempt review": {policyWith(always, ""), func(r *reach.Request, _ *server) {
			r.Resource = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
		}, reach.EffectNone, reach.ReasonExempt, "Kubernetes exempts tokenreviews from policies"},
		"no binding":                        {strings.Split(policyWith(always, ""), "\n---\n")[0], nil, reach.EffectNone, reach.ReasonNoBinding, `no binding names it`},
		"no policy":                         {strings.Split(policyWith(always, ""), "\n---\n")[1], nil, reach.EffectNone, reach.ReasonNoPolicy, `there is no ValidatingAdmissionPolicy "p", which it names`},
		"mutating policy":                   {strings.ReplaceAll(policyWith(`mutations: []`, ""), "Validating", "Mutating"), nil, reach.EffectMutates, "", "its mutations are evaluated"},
		"mutation error ignored":            {mutationsWith("failurePolicy: Ignore", `{jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations/a', value: object.spec.owner}]"}}`), nil, reach.EffectNone, reach.ReasonErrorIgnored, "an error is ignored, because failurePolicy is Ignore: mutations[0]: JSON Patch: "},
		"mutation error not ignored":        {mutationsWith("failurePolicy: Fail, matchConditions: [{name: all, expression: 'true'}]", `{jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations/a', value: object.spec.owner}]"}}`), nil, reach.EffectMutates, "", "its mutations are evaluated"},
		"apply configuration error ignored": {mutationsWith("failurePolicy: Ignore", `{applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': object.spec.none}}}"}}`), nil, reach.EffectNone, reach.ReasonErrorIgnored, "resulted in error: no such key: none"},
		"mutation after what it needs":      {mutationsWith("failurePolicy: Ignore", `{jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'b': 'c'}}]"}}, {applyConfiguration: {expression: "Object{spec: Object.spec{list: ['a']}}"}}, {jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations/a', value: object.spec.owner}]"}}`), nil, reach.EffectMutates, "", "its mutations are evaluated"},
		"mutation with a variable":          {mutationsWith("failurePolicy: Ignore, variables: [{name: o, expression: object.spec.owner}]", `{jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/spec/other', value: variables.o}]"}}`), nil, reach.EffectMutates, "", "its mutations are evaluated"},
		"mutation not compiled":             {mutationsWith("failurePolicy: Ignore", `{jsonPatch: {expression: "newInALaterVersion(object)"}}`), nil, reach.EffectMutates, "", "its mutations are evaluated"},
		"mutating policy, delete":           {strings.ReplaceAll(policyWith(`mutations: []`, ""), "Validating", "Mutating"), func(r *reach.Request, _ *server) { r.Operation = "DELETE" }, reach.EffectNone, reach.ReasonOperation, "a delete has no object"},
	} {
		t.Run(name, func(t *testing.T) {
			request, cluster := createWidget(), testServer()
			if test.change != nil {
				test.change(&request, &cluster)
			}
			got := findingOf(t, test.manifests, request, cluster)
			if got.Effect != test.effect || got.Reason != test.reason || !strings.Contains(got.Text, test.text) {
				t.Errorf("got %q, %q, %s\nwant %q, %q, …%s…", got.Effect, got.Reason, got.Text, test.effect, test.reason, test.text)
			}
		})
	}
}

// An unknown namespace matters only if everything else matches.
func TestUnknownNamespace(t *testing.T) {
	const byTeam = `namespaceSelector: {matchLabels: {team: blue}}, `
	unknown := unreadable{testServer()}
	for name, test := range map[string]struct {
		text string
		want reach.Effect
	}{
		"webhook":              {webhookWith(byTeam + `rules: [{` + rule + `}]`), reach.EffectUnknown},
		"other object":         {webhookWith(byTeam + `objectSelector: {matchLabels: {color: red}}, rules: [{` + rule + `}]`), reach.EffectNone},
		"selected object":      {webhookWith(byTeam + `objectSelector: {matchLabels: {color: green}}, rules: [{` + rule + `}]`), reach.EffectUnknown},
		"no namespaceSelector": {webhookWith(`rules: [{` + rule + `}]`), reach.EffectCalled},
		"policy":               {policyWith(`validations: []`, `matchResources: {`+byTeam+`resourceRules: [{`+rule+`}]}`), reach.EffectUnknown},
		"excluded resource":    {policyWith(`validations: []`, `matchResources: {`+byTeam+`excludeResourceRules: [{`+rule+`}]}`), reach.EffectNone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findingOf(t, test.text, createWidget(), unknown); got.Effect != test.want {
				t.Errorf("%s: got %s, want %s", test.text, got, test.want)
			}
		})
	}
}

// TestObjectWithoutKind: the object of a request has the kind of the request, also if it does not say so.
func TestObjectWithoutKind(t *testing.T) {
	request := createWidget()
	delete(request.Object, "kind")
	delete(request.Object, "apiVersion")
	text := webhookWith(`matchConditions: [{name: kind, expression: "object.kind == 'Widget'"}], rules: [{` + rule + `}]`)
	if got := findingOf(t, text, request, testServer()); got.Effect != reach.EffectCalled {
		t.Errorf("got %s, want that it is called", got)
	}
}

// unreadable is a server whose namespaces cannot be read.
type unreadable struct{ server }

func (unreadable) Namespace(context.Context, string) (map[string]any, error) {
	return nil, errors.New("forbidden")
}

// TestNames compares the lines for a policy and a binding that do not belong together.
func TestNames(t *testing.T) {
	text := strings.Replace(policyWith(`validations: [{expression: "true"}]`, ""), "policyName: p", "policyName: q", 1)
	admission, err := reach.New(manifests(t, text))
	if err != nil {
		t.Fatal(err)
	}
	findings, err := admission.Explain(t.Context(), createWidget(), testServer())
	if err != nil || len(findings) != 2 {
		t.Fatalf("got %v, %v, want two findings", findings, err)
	}
	for i, want := range []string{
		`ValidatingAdmissionPolicy "p": no binding names it`,
		`ValidatingAdmissionPolicyBinding "b": there is no ValidatingAdmissionPolicy "q", which it names`,
	} {
		if got := findings[i].String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestIncompleteRequest(t *testing.T) {
	admission, err := reach.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admission.Explain(t.Context(), reach.Request{}, testServer()); err == nil {
		t.Error("got no error for a request without an operation")
	}
}

func TestMalformedManifest(t *testing.T) {
	for name, text := range map[string]string{"webhook": webhookWith(`rules: 3`), "policy": policyWith(`validations: {}`, "")} {
		t.Run(name, func(t *testing.T) {
			if _, err := reach.New(manifests(t, text)); err == nil {
				t.Errorf("got no error for %s", text)
			}
		})
	}
}
