package reference

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// answerReview is a webhook's answer. It refuses what is labeled "banned", fails for what
// is labeled "broken", and on /mutate labels pods that have no label "hooked".
func answerReview(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	raw := string(review.Request.Object.Raw) + string(review.Request.OldObject.Raw)
	answer := &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: true,
		AuditAnnotations: map[string]string{"reviewed": "yes"}, Warnings: []string{"reviewed by a webhook"},
	}
	switch {
	case strings.Contains(raw, `"broken"`):
		http.Error(w, "out of order", http.StatusTeapot)
		return
	case strings.Contains(raw, `"banned"`), strings.Contains(raw, `"container":"secret"`):
		answer.Allowed = false
		answer.Result = &metav1.Status{Message: "not welcome", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	case r.URL.Path == "/mutate" && len(review.Request.Object.Raw) > 0 && review.Request.SubResource == "" && !strings.Contains(raw, `"hooked"`):
		answer.Patch, answer.PatchType = hookPatch(raw), ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// hookPatch annotates an object, whether it has annotations or not.
func hookPatch(raw string) []byte {
	if strings.Contains(raw, `"annotations":`) {
		return []byte(`[{"op":"add","path":"/metadata/annotations/hooked","value":"yes"}]`)
	}
	return []byte(`[{"op":"add","path":"/metadata/annotations","value":{"hooked":"yes"}}]`)
}

// webhookServer starts a webhook, and returns its URL.
func webhookServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(answerReview))
	server.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(server.Close)
	return server.URL
}

// hookRules are the rules of both webhooks here.
func hookRules() []registrationv1.RuleWithOperations {
	return []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.OperationAll},
		Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/exec"}},
	}}
}

// webhookSubject is a Subject of the requests of both webhook plugins, whose World
// start fills.
func webhookSubject(name string) contract.Subject {
	subject := kubeSubject(name)
	subject.Subresources = []string{"exec"}
	config := "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"
	subject.Config = config
	subject.Configs.Valid = []string{config, config + "kubeConfigFile: \"\"\n"}
	subject.Configs.Invalid = []string{"apiVersion: v1\nkind: Pod\n", config + "kubeConfigFile: relative\n", config + "kubeConfigFile: /does/not/exist\n"}
	good := withLabel("team", "blue")
	image := func(pod *core.Pod) { pod.Spec.Containers[0].Image = "registry.example.com/main:2" }
	subject.Allow = append(excluded(),
		framework.Create(good), framework.UpdateWith(good, image), framework.Delete(good), framework.DeleteCollection(good), execInto(good),
		framework.Create(plainPod("free", "p")), framework.Create(withLabel("banned", "x")).As("robot"), bindingOf(withLabel("banned", "x"), "node"),
		framework.Create(podWith("ignored", "p", func(pod *core.Pod) { pod.Labels = map[string]string{"broken": "x"} })),
	)
	subject.Reject = []framework.Request{
		framework.Create(withLabel("banned", "x")), framework.Create(withLabel("broken", "x")), framework.Delete(withLabel("banned", "x")),
		framework.UpdateWith(good, func(pod *core.Pod) { pod.Labels["banned"] = "x" }),
		framework.Create(plainPod("absent", "p")),
		framework.Connect(good, "exec", &core.PodExecOptions{Container: "secret", Command: []string{"true"}}),
	}
	return subject
}

// hookNamespaces are those that webhooks are called for: one whose failures count, one
// whose failures do not.
func hookNamespaces() []runtime.Object {
	ignored := storedNamespace("ignored")
	ignored.Labels = map[string]string{"ignored": "yes"}
	return []runtime.Object{storedNamespace("policed", policed), ignored, storedNamespace("free")}
}

// hookedBy selects namespaces by a label.
func hookedBy(label string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}
}

// noRobots keeps a webhook from what a robot asks for.
func noRobots() []registrationv1.MatchCondition {
	return []registrationv1.MatchCondition{{Name: "no-robots", Expression: "request.userInfo.username != 'robot'"}}
}

func mutatingWebhookEntry() entry {
	start := func(t *testing.T, subject *contract.Subject) {
		hook := registrationv1.MutatingWebhook{
			Name: "hook.example.com", ClientConfig: registrationv1.WebhookClientConfig{URL: ptr.To(webhookServer(t) + "/mutate")}, Rules: hookRules(),
			FailurePolicy: ptr.To(registrationv1.Fail), MatchPolicy: ptr.To(registrationv1.Exact), NamespaceSelector: hookedBy("policed"), ObjectSelector: &metav1.LabelSelector{},
			SideEffects: ptr.To(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, MatchConditions: noRobots(),
			ReinvocationPolicy: ptr.To(registrationv1.IfNeededReinvocationPolicy), TimeoutSeconds: ptr.To(int32(10)),
		}
		open := *hook.DeepCopy()
		open.Name, open.FailurePolicy, open.NamespaceSelector = "open.example.com", ptr.To(registrationv1.Ignore), hookedBy("ignored")
		hooks := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Webhooks: []registrationv1.MutatingWebhook{hook, open}}
		subject.World = []fakes.Option{fakes.WithObjects(append(hookNamespaces(), hooks)...)}
	}
	return entry{subject: webhookSubject("MutatingAdmissionWebhook"), start: start, waivers: []waiver{
		{"S1", "it evaluates namespace selectors before rules: for a namespace that is not in the cache it asks the API server, for every resource; intended, because a cache may be stale", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"E2", "the Status is that of the webhook, with a prefix in its message: it has resource and name only if the webhook sets them; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go:54"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"I1", "some injections are optional: the ID of the API server, the drained notification, loaders of manifests, an authorizer, resolvers with defaults; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go:234"},
		{"I4", "SetStaticSourceFactory is a setter that the plugin itself calls; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go:175"},
	}}
}

func validatingWebhookEntry() entry {
	start := func(t *testing.T, subject *contract.Subject) {
		hook := registrationv1.ValidatingWebhook{
			Name: "hook.example.com", ClientConfig: registrationv1.WebhookClientConfig{URL: ptr.To(webhookServer(t) + "/validate")}, Rules: hookRules(),
			FailurePolicy: ptr.To(registrationv1.Fail), MatchPolicy: ptr.To(registrationv1.Exact), NamespaceSelector: hookedBy("policed"), ObjectSelector: &metav1.LabelSelector{},
			SideEffects: ptr.To(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, MatchConditions: noRobots(), TimeoutSeconds: ptr.To(int32(10)),
		}
		open := *hook.DeepCopy()
		open.Name, open.FailurePolicy, open.NamespaceSelector = "open.example.com", ptr.To(registrationv1.Ignore), hookedBy("ignored")
		hooks := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Webhooks: []registrationv1.ValidatingWebhook{hook, open}}
		subject.World = []fakes.Option{fakes.WithObjects(append(hookNamespaces(), hooks)...)}
	}
	return entry{subject: webhookSubject("ValidatingAdmissionWebhook"), start: start, waivers: []waiver{
		{"S1", "it evaluates namespace selectors before rules: for a namespace that is not in the cache it asks the API server, for every resource; intended, because a cache may be stale", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"E2", "the Status is that of the webhook, with a prefix in its message: it has resource and name only if the webhook sets them; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go:54"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"I1", "some injections are optional: the ID of the API server, the drained notification, loaders of manifests, an authorizer, resolvers with defaults; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go:234"},
		{"I4", "SetStaticSourceFactory is a setter that the plugin itself calls; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go:175"},
	}}
}
