package expect

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// A step can install a webhook under test. What a request writes is no endpoint's.
func TestWebhookServicesOfSteps(t *testing.T) {
	configuration := func(namespace string) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": namespace, "name": "s"}}}}}
	}
	got, _ := WebhookAddresses([]scenario.Scenario{{Spec: scenario.Spec{When: []scenario.Step{
		{Install: []map[string]any{configuration("b"), configuration("$(id)")}},
		{Parallel: []scenario.Step{{Create: configuration("a")}}}, {Update: map[string]any{"webhooks": "odd"}},
		{Create: configuration("dry"), DryRun: true},
	}}}})
	if diff := cmp.Diff([]string{"b/s"}, got); diff != "" {
		t.Errorf("services (-want +got)\n%s", diff)
	}
}

// configured is a configuration with a webhook w.
func configured(clientConfig map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"webhooks": []any{map[string]any{"name": "w", "clientConfig": clientConfig}},
	}
}

// A URL is that of a Hook only with the placeholders of the Hooks.
func TestURLUnderTest(t *testing.T) {
	for address, want := range map[string]string{
		"https://127.0.0.1:9443/deny":                    "127.0.0.1:9443",
		"https://[::1]/x":                                "[::1]:443",
		"HTTPS://Guard.example.com":                      "guard.example.com:443",
		"https://$(namespace).example.com:8443":          "$(namespace).example.com:8443",
		"https://$(hooks.host):9443/":                    "$(hooks.host):9443",
		"https://other:$(hooks.port)/$(id)":              "other:1",
		"https://other/$(hooks.host):$(hooks.port)":      "other:443",
		"https://unknown.invalid/":                       "",
		"http://127.0.0.1:9443":                          "",
		"https://$(hooks.host):$(hooks.port)/$(id)/path": "",
		"https://$(hooks.host)/$(id)/path":               "",
		"https://localhost:$(hooks.port)/$(id)":          "",
		"":                                               "",
	} {
		t.Run(address, func(t *testing.T) {
			s := scenario.Scenario{Spec: scenario.Spec{Given: []map[string]any{configured(map[string]any{"url": address})}}}
			got := ""
			if found := WebhooksUnderTest(s); len(found) > 0 {
				got = found[0].HostPort
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Every way to configure a webhook under test is found.
func TestWaysToWebhookUnderTest(t *testing.T) {
	url := configured(map[string]any{"url": "https://h/"})
	own := configured(map[string]any{"service": map[string]any{"namespace": "$(namespace)", "name": "s"}})
	ofPort := func(port any) map[string]any {
		return configured(map[string]any{"service": map[string]any{"namespace": "$(namespace)", "name": "s", "port": port}})
	}
	external := func(host string) map[string]any {
		return map[string]any{"kind": "Service", "metadata": map[string]any{"name": "s"}, "spec": map[string]any{"externalName": host}}
	}
	given := func(manifests ...map[string]any) scenario.Spec { return scenario.Spec{Given: manifests} }
	when := func(step scenario.Step) scenario.Spec { return scenario.Spec{When: []scenario.Step{step}} }
	of := scenario.ObjectReference{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}
	body := `{"webhooks": [{"clientConfig": {}}]}`
	file := map[string]string{"a.yaml": "kind: ValidatingWebhookConfiguration\nwebhooks: [{clientConfig: {url: 'https://h'}}]"}
	hosted := []WebhookUnderTest{{Name: "w", HostPort: "h:443"}}
	ours, none := configured(map[string]any{"url": "https://$(hooks.host):$(hooks.port)/$(id)"}), configured(map[string]any{"url": "https://unknown.invalid/"})
	for name, test := range map[string]struct {
		spec   scenario.Spec
		want   []WebhookUnderTest
		direct bool
	}{
		"given":          {given(url), hosted, false},
		"install":        {when(scenario.Step{Install: []map[string]any{url}}), hosted, false},
		"create":         {when(scenario.Step{Create: url}), nil, true},
		"create a Hook":  {when(scenario.Step{Create: ours}), nil, false},
		"create none":    {when(scenario.Step{Create: none}), nil, false},
		"a Hook of two":  {when(scenario.Step{Create: map[string]any{"apiVersion": of.APIVersion, "webhooks": []any{ours["webhooks"].([]any)[0], url["webhooks"].([]any)[0]}}}), nil, true},
		"in parallel":    {when(scenario.Step{Parallel: []scenario.Step{{Update: url}}}), nil, true},
		"meanwhile":      {scenario.Spec{Hooks: map[string]scenario.Hook{"a": {Reply: scenario.Reply{Meanwhile: []scenario.Step{{Apply: url}}}}}}, nil, true},
		"dry run":        {when(scenario.Step{Create: url, DryRun: true}), nil, false},
		"merge patch":    {when(scenario.Step{Patch: &scenario.Patch{ObjectReference: of, Merge: map[string]any{"webhooks": url["webhooks"]}}}), nil, true},
		"JSON patch":     {when(scenario.Step{Patch: &scenario.Patch{ObjectReference: of, JSON: []hook.PatchOperation{{Op: "replace", Path: "/webhooks/0/clientConfig/url"}}}}), nil, true},
		"other patch":    {when(scenario.Step{Patch: &scenario.Patch{ObjectReference: of, JSON: []hook.PatchOperation{{Op: "replace", Path: "/webhooks/0/timeoutSeconds"}}}}), nil, false},
		"body":           {when(scenario.Step{Create: map[string]any{"apiVersion": of.APIVersion}, Body: &body}), nil, true},
		"file":           {scenario.Spec{Server: &scenario.Server{Files: file}}, nil, true},
		"later file":     {when(scenario.Step{Files: &scenario.Files{Write: file}}), nil, true},
		"own Service":    {given(own), nil, false},
		"to the Hooks":   {given(own, external("$(hooks.host)")), nil, false},
		"their port":     {given(ofPort("$(hooks.port)"), external("$(hooks.host)")), nil, false},
		"another port":   {given(ofPort(int64(9443)), external("$(hooks.host)")), []WebhookUnderTest{{Name: "w"}}, false},
		"another host":   {given(own, external("localhost")), []WebhookUnderTest{{Name: "w"}}, false},
		"another group":  {given(map[string]any{"apiVersion": "example.com/v1", "webhooks": url["webhooks"]}), nil, false},
		"conversion URL": {given(map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"url": "https://h"}}}}}), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{Spec: test.spec}
			if diff := cmp.Diff(test.want, WebhooksUnderTest(s)); diff != "" || configures(s) != test.direct {
				t.Errorf("configured by a request or file: %t, want %t; -want +got\n%s", configures(s), test.direct, diff)
			}
		})
	}
	if _, hosts := WebhookAddresses(nil, url); !slices.Equal(hosts, []string{"h:443"}) {
		t.Errorf("hosts %v", hosts)
	}
}

// guarded is a scenario with a webhook under test and a Hook.
const guarded = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.unseen}
spec:
  level: MUST
  requirement: A requirement.
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: guard}
      webhooks:
        - {name: guard.example.com, clientConfig: {service: {namespace: guard-system, name: guard}}}
        - {name: hook.example.com}
HOOKS
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      then: {code: 201}
`

func guardedScenario(t *testing.T, hooks string) scenario.Scenario {
	t.Helper()
	loaded, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(strings.ReplaceAll(guarded, "HOOKS", hooks))}}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded[0]
}

// Calls of webhooks that are installed for all scenarios are seen if their Service has an endpoint.
func TestUnseenInstalled(t *testing.T) {
	s := guardedScenario(t, "")
	shipped := func(name string, clientConfig map[string]any) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{"name": name, "clientConfig": clientConfig}}}
	}
	service := func(name string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": "guard-system", "name": name}}
	}
	installed := []map[string]any{
		shipped("url.example.com", map[string]any{"url": "https://h"}), shipped("", service("other")), {"kind": "ConfigMap"},
		shipped("seen.example.com", service("guard")), shipped("direct.example.com", service("other")),
	}
	endpoints := map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}
	found := UnseenOf(s, UnseenOptions{Endpoints: endpoints, Installed: installed})
	const want = "calls of direct.example.com: the API server calls Service guard-system/other itself; --endpoint guard-system/other=URL makes them visible; " +
		"calls of url.example.com: the API server calls the address in the clientConfig itself; in given, install or --install, a Service with an --endpoint makes them visible"
	if got := found.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := found.Unusable(s); got != "" {
		t.Errorf("unusable: %s", got)
	}
	if _, is := UnseenOf(s, UnseenOptions{Endpoints: endpoints, Installed: installed, URLs: true})["url.example.com"]; is {
		t.Error("calls of a URL are not seen, although they go through a Hook")
	}
}

// A script for a webhook that the API server calls itself cannot be used.
func TestUnseenScripts(t *testing.T) {
	const hooks = "  hooks: {guard.example.com: {fault: reset}}"
	s := guardedScenario(t, hooks)
	const want = "the scenario has a script for webhook guard.example.com, but the API server calls this webhook without a Hook: give its configuration in given or install, with a Service, and the URL of the webhook with --endpoint guard-system/guard=URL"
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	endpoints := map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}
	if got := UnseenOf(s, UnseenOptions{Endpoints: endpoints}).Unusable(s); got != "" {
		t.Errorf("with an endpoint, got %q", got)
	}
	s = guardedScenario(t, "")
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); got != "" {
		t.Errorf("without a script, got %q", got)
	}
	s.Spec.When = []scenario.Step{{Parallel: []scenario.Step{{Script: map[string]scenario.Hook{"guard.example.com": {}}}}}}
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); got != want {
		t.Errorf("in a step: got %q, want %q", got, want)
	}
}

// An expectation of calls cannot be checked if some are not seen. A webhook that a request configures is called without a
// Hook, whatever Endpoints there are.
func TestUndecidable(t *testing.T) {
	endpoint := UnseenOptions{URLs: true, Endpoints: map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}}
	const why = "admissiontest cannot check the expected calls: calls of "
	configure, body := guardedScenario(t, ""), `{"webhooks": [{"clientConfig": {"url": "https://h"}}]}`
	configure.Spec.When = append(configure.Spec.When, scenario.Step{Update: configure.Spec.Given[0]})
	anyName := guardedScenario(t, "")
	anyName.Spec.When = append(anyName.Spec.When, scenario.Step{Update: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1"}, Body: &body})
	uses := guardedScenario(t, "")
	uses.Spec.When[0].Create["data"] = map[string]any{"uid": "$(steps.a.calls.0.request.uid)"}
	for name, test := range map[string]struct {
		s       scenario.Scenario
		expect  *scenario.Expectation
		options UnseenOptions
		want    string
	}{
		"no calls":       {guardedScenario(t, ""), &scenario.Expectation{Code: []int{201}}, UnseenOptions{}, ""},
		"calls":          {guardedScenario(t, ""), &scenario.Expectation{Calls: &scenario.Calls{}}, UnseenOptions{}, why + "guard.example.com"},
		"times":          {guardedScenario(t, ""), &scenario.Expectation{AnsweredLast: true}, UnseenOptions{}, why + "guard.example.com"},
		"a placeholder":  {uses, nil, UnseenOptions{}, why + "guard.example.com"},
		"an endpoint":    {uses, &scenario.Expectation{Calls: &scenario.Calls{}}, endpoint, ""},
		"a request":      {configure, &scenario.Expectation{Calls: &scenario.Calls{}}, endpoint, why + "any webhook"},
		"only a request": {configure, nil, endpoint, ""},
		"any webhook":    {anyName, &scenario.Expectation{Calls: &scenario.Calls{}}, endpoint, why + "any webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			test.s.Spec.When[0].Then = test.expect
			got := UnseenOf(test.s, test.options).Undecidable(test.s)
			if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
