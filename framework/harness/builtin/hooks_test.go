package builtin_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness/builtin"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// stopping is a framework.T that keeps what ended it.
type stopping struct {
	framework.T
	text string
}

func (s *stopping) Helper() {}
func (s *stopping) Fatalf(format string, a ...any) {
	s.text = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

// fatal returns the text that ended a test.
func fatal(t *testing.T, test func(framework.T)) string {
	t.Helper()
	s, done := &stopping{T: t}, make(chan struct{})
	go func() { defer close(done); test(s) }()
	<-done
	return s.text
}

func TestMisuseOfHooks(t *testing.T) {
	configuration := mutating(t, "name: a.example.com", "name: b.example.com, clientConfig: {url: 'https://127.0.0.1:1'}")
	for name, test := range map[string]struct {
		object  kruntime.Object
		scripts map[string]hook.Script
		want    string
	}{
		"nil":            {nil, nil, "install Hooks: it is nil: give a webhook configuration, a policy or a binding"},
		"another kind":   {pod(), nil, "install Hooks: it is a Pod: give a webhook configuration, a policy or a binding"},
		"a policy":       {&admissionregistrationv1.ValidatingAdmissionPolicy{}, nil, "install Hooks: got a *v1.ValidatingAdmissionPolicy, want a webhook configuration of admissionregistration.k8s.io/v1"},
		"unknown name":   {configuration, map[string]hook.Script{"a.example.org": {}}, `install Hooks: there is a Script for "a.example.org", which is no webhook without clientConfig of this configuration; did you mean "a.example.com"?`},
		"client config":  {configuration, map[string]hook.Script{"b.example.com": {}}, `install Hooks: there is a Script for "b.example.com", which is no webhook without clientConfig of this configuration; did you mean "a.example.com"?`},
		"invalid script": {configuration, map[string]hook.Script{"a.example.com": {Replies: []hook.Reply{{Fault: "hangs"}}}}, `install Hooks: register hook a.example.com of configuration m: check script: reply 1: fault: unknown fault "hangs"; did you mean "hang"?`},
	} {
		t.Run(name, func(t *testing.T) {
			got := fatal(t, func(s framework.T) { builtin.NewHooks(s, fakes.NewWorld(t)).Install(test.object, test.scripts) })
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if len(configuration.Webhooks[0].AdmissionReviewVersions) != 0 {
		t.Error("Install changed the configuration that it got")
	}
}

// The defaults are set where nothing is, and only there.
func TestStored(t *testing.T) {
	const selectors = "matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}"
	for name, test := range map[string]struct {
		given kruntime.Object
		want  string
	}{
		"mutating": {
			read[admissionregistrationv1.MutatingWebhookConfiguration](t, "{metadata: {name: a}, webhooks: [{name: a, rules: [{resources: [pods]}]}]}"),
			"{metadata: {name: a}, webhooks: [{name: a, failurePolicy: Fail, timeoutSeconds: 10, reinvocationPolicy: Never, " + selectors + ", rules: [{resources: [pods], scope: '*'}], clientConfig: {}, sideEffects: null, admissionReviewVersions: null}]}",
		},
		"validating": {
			read[admissionregistrationv1.ValidatingWebhookConfiguration](t, "{webhooks: [{name: a, failurePolicy: Ignore, timeoutSeconds: 3, rules: [{scope: Cluster}], matchPolicy: Exact, objectSelector: {matchLabels: {a: b}}}]}"),
			"{webhooks: [{name: a, failurePolicy: Ignore, timeoutSeconds: 3, rules: [{scope: Cluster}], matchPolicy: Exact, objectSelector: {matchLabels: {a: b}}, namespaceSelector: {}, clientConfig: {}, sideEffects: null, admissionReviewVersions: null}], metadata: {}}",
		},
		"policy": {
			read[admissionregistrationv1.ValidatingAdmissionPolicy](t, "{spec: {matchConstraints: {resourceRules: [{}], excludeResourceRules: [{}]}}}"),
			"{metadata: {}, spec: {failurePolicy: Fail, matchConstraints: {" + selectors + ", resourceRules: [{scope: '*'}], excludeResourceRules: [{scope: '*'}]}}, status: {}}",
		},
		"policy without constraints": {&admissionregistrationv1.ValidatingAdmissionPolicy{}, "{metadata: {}, spec: {failurePolicy: Fail}, status: {}}"},
		"binding": {
			read[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, "{spec: {policyName: a, matchResources: {matchPolicy: Exact}}}"),
			"{metadata: {}, spec: {policyName: a, matchResources: {matchPolicy: Exact, namespaceSelector: {}, objectSelector: {}}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.given.DeepCopyObject()
			got, err := yaml.Marshal(builtin.Stored(t, test.given)[0])
			if err != nil {
				t.Fatal(err)
			}
			var gotFields, want map[string]any
			for text, into := range map[string]*map[string]any{string(got): &gotFields, test.want: &want} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			delete(gotFields, "kind")
			delete(gotFields, "apiVersion")
			if diff := cmp.Diff(want, gotFields); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, test.given); diff != "" {
				t.Errorf("Stored changed the object that it got:\n%s", diff)
			}
		})
	}
	if got, want := fatal(t, func(s framework.T) { builtin.Stored(s, pod(), nil) }), "set defaults of object 1: it is a Pod: give a webhook configuration, a policy or a binding"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
