package builtin_test

import (
	"slices"

	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/framework/harness/builtin"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"sigs.k8s.io/yaml"
)

// read decodes a manifest.
func read[T any](t *testing.T, manifest string) *T {
	t.Helper()
	made := new(T)
	if err := yaml.UnmarshalStrict([]byte(manifest), made); err != nil {
		t.Fatal(err)
	}
	return made
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
}

const onPods = "rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]"

// mutating returns a configuration m with these webhooks.
func mutating(t *testing.T, webhooks ...string) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	text := "metadata: {name: m}\nwebhooks:\n"
	for _, webhook := range webhooks {
		text += "- {" + webhook + ", " + onPods + "}\n"
	}
	return read[admissionregistrationv1.MutatingWebhookConfiguration](t, text)
}

// labels is the Script that adds a label.
func labels(key string) hook.Script {
	return hook.Script{Replies: []hook.Reply{{Patch: []hook.PatchOperation{
		{Op: "add", Path: "/metadata/labels", Value: map[string]any{}},
		{Op: "add", Path: "/metadata/labels/" + key, Value: "yes"},
	}}}}
}

// names returns the plugins of a phase and the webhooks in the order in which they were called.
func names(trace framework.Trace, phase framework.Phase) []string {
	var all []string
	for _, call := range trace {
		switch {
		case call.Phase != phase:
		case call.Plugin == nil:
			all = append(all, call.Webhook)
		case call.Plugin.Handled:
			all = append(all, call.Plugin.Name)
		}
	}
	return all
}

// Webhooks are called over TLS, in their plugins, and again after a change.
func TestWebhooks(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("default")))
	hooks := builtin.NewHooks(t, w)
	hooks.Install(mutating(t, "name: first.example.com, reinvocationPolicy: IfNeeded", "name: second.example.com"), map[string]hook.Script{"second.example.com": labels("by")})
	hooks.Install(read[admissionregistrationv1.ValidatingWebhookConfiguration](t, "metadata: {name: v}\nwebhooks: [{name: check.example.com, "+onPods+"}]"), nil)
	h := harness.NewChain(t, harness.Chain{Plugins: builtin.Plugins()}, harness.WithWorld(w))
	result := h.Do(framework.Create(pod())).MustAllow(t)
	pass := []string{"NamespaceLifecycle", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook"}
	all := result.Trace.With(hooks.Calls())
	if diff := cmp.Diff(slices.Concat(pass, []string{"first.example.com", "second.example.com"}, pass, []string{"first.example.com"}), names(all, framework.Mutating)); diff != "" {
		t.Errorf("mutating phase, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "check.example.com"}, names(all, framework.Validating)); diff != "" {
		t.Errorf("validating phase, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"by": "yes"}, harness.Mutated[*corev1.Pod](t, result).Labels); diff != "" {
		t.Errorf("labels, -want +got:\n%s", diff)
	}
	if key := "mutation.webhook.admission.k8s.io/round_1_index_0"; result.Audit.Annotations[key] == "" {
		t.Errorf("audit annotations %v, want one for %s", result.Audit.Annotations, key)
	}
	hooks.Install(read[admissionregistrationv1.ValidatingWebhookConfiguration](t, "metadata: {name: v}\nwebhooks: [{name: check.example.com, "+onPods+"}]"), map[string]hook.Script{
		"check.example.com": {Replies: []hook.Reply{{Status: map[string]any{"code": 403, "reason": "Forbidden", "message": "not today"}}}},
	})
	h.Do(framework.Create(pod())).MustReject(t, metav1.StatusReasonForbidden, `admission webhook "check.example.com" denied the request: not today`)
}

// A webhook that cannot be called refuses, as its failurePolicy says by default.
func TestWebhookFault(t *testing.T) {
	for fault, want := range map[hook.Fault]string{hook.TLSWrongCA: "failed calling webhook", hook.WrongUID: "expected response.uid"} {
		t.Run(string(fault), func(t *testing.T) {
			w := fakes.NewWorld(t, fakes.WithObjects(namespace("default")))
			hooks := builtin.NewHooks(t, w)
			hooks.Install(mutating(t, "name: a.example.com"), map[string]hook.Script{"a.example.com": {Replies: []hook.Reply{{Fault: fault}}}})
			h := harness.NewChain(t, harness.Chain{Plugins: builtin.Plugins()}, harness.WithWorld(w))
			h.Do(framework.Create(pod())).MustReject(t, metav1.StatusReasonInternalError, want)
		})
	}
}

// Policies, quotas and namespaces of the World decide.
func TestDecisions(t *testing.T) {
	policy := read[admissionregistrationv1.ValidatingAdmissionPolicy](t, `{metadata: {name: a}, spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}, validations: [{expression: "object.metadata.name != 'p'", message: not p}]}}`)
	binding := read[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, "{metadata: {name: a}, spec: {policyName: a, validationActions: [Deny]}}")
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "default"}}
	limit.Spec.Hard = corev1.ResourceList{"count/pods": resource.MustParse("0")}
	limit.Status.Hard = limit.Spec.Hard
	limit.Status.Used = corev1.ResourceList{"count/pods": resource.MustParse("0")}
	for name, test := range map[string]struct {
		objects []runtime.Object
		plugin  string // that refuses
		reason  metav1.StatusReason
		want    string
	}{
		"allowed":      {[]runtime.Object{namespace("default")}, "", "", ""},
		"no namespace": {nil, "NamespaceLifecycle", metav1.StatusReasonNotFound, `namespaces "default" not found`},
		"policy":       {append(builtin.Stored(t, policy, binding), namespace("default")), "ValidatingAdmissionPolicy", metav1.StatusReasonInvalid, "denied request: not p"},
		"quota":        {[]runtime.Object{namespace("default"), limit}, "ResourceQuota", metav1.StatusReasonForbidden, "exceeded quota: q"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakes.NewWorld(t, fakes.WithObjects(test.objects...))
			pods := corev1.SchemeGroupVersion.WithResource("pods")
			counts := generic.NewObjectCountEvaluator(pods.GroupResource(), generic.ListResourceUsingListerFunc(generic.ListerFuncForResourceFunc(w.Informers().ForResource), pods), "")
			h := harness.NewChain(t, harness.Chain{Plugins: append(builtin.Plugins(), builtin.ResourceQuota())}, harness.WithWorld(w), harness.WithInjectors(fakes.InjectQuotaConfiguration(fakes.Quota(counts))))
			result := h.Do(framework.Create(pod()))
			if test.want == "" {
				result.MustAllow(t)
				return
			}
			result.MustReject(t, test.reason, test.want)
			if last := result.Trace[len(result.Trace)-1].Plugin; last.Name != test.plugin || last.Refused == nil {
				t.Errorf("the last call is %+v, want a refusal by %s", last, test.plugin)
			}
		})
	}
}
