package reference

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/authorization"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// matchPods are the rules of policies here: pods and what connects to them, in
// namespaces with the label "policed".
func matchPods(operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"policed": "yes"}}, ObjectSelector: &metav1.LabelSelector{},
		MatchPolicy: ptr.To(admissionv1.Equivalent),
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/exec"}},
		}}},
	}
}

// policed is a namespace that policies match.
func policed(n *corev1.Namespace) { n.Labels = map[string]string{"policed": "yes"} }

// withLabel gives a pod a label and nothing else.
func withLabel(key, value string) *core.Pod {
	return podWith("policed", "p", func(pod *core.Pod) { pod.Labels = map[string]string{key: value} })
}

func validatingPolicyEntry() entry {
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy.example.com"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		ParamKind:        &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		MatchConstraints: matchPods(admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect),
		Variables:        []admissionv1.Variable{{Name: "labels", Expression: "object == null || !has(object.metadata) || !has(object.metadata.labels) ? {} : object.metadata.labels"}},
		Validations: []admissionv1.Validation{
			{Expression: "!('banned' in variables.labels)", MessageExpression: "'label banned is not welcome in ' + params.metadata.name"},
			{Expression: "request.operation != 'CONNECT' || object.container != 'secret'", Reason: ptr.To(metav1.StatusReasonForbidden)},
			{Expression: "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'"},
			{Expression: "!('broken' in variables.labels) || int(variables.labels['broken']) > 0"},
		},
		MatchConditions:  []admissionv1.MatchCondition{{Name: "no-robots", Expression: "request.userInfo.username != 'robot'"}},
		AuditAnnotations: []admissionv1.AuditAnnotation{{Key: "team", ValueExpression: "'team' in variables.labels ? string(variables.labels['team']) : ''"}},
		FailurePolicy:    ptr.To(admissionv1.Fail),
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ParamRef: &admissionv1.ParamRef{Name: "settings", Namespace: "policed", ParameterNotFoundAction: ptr.To(admissionv1.DenyAction)},
		ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit},
	}}
	second := binding.DeepCopy()
	second.Name = "second"
	warn := binding.DeepCopy()
	warn.Name, warn.Spec.ValidationActions = "w", []admissionv1.ValidationAction{admissionv1.Warn}
	subject := kubeSubject("ValidatingAdmissionPolicy", policy, binding, warn, second, storedNamespace("policed", policed), storedNamespace("free"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "policed", Name: "settings"}})
	subject.Subresources = []string{"exec"}
	policyConfigs(&subject, "ValidatingAdmissionPolicyConfiguration")
	good := withLabel("team", "blue")
	subject.Allow = append(excluded(),
		framework.Create(good), framework.Create(plainPod("policed", "p")), framework.UpdateWith(plainPod("policed", "p"), labelPod), framework.Delete(good), framework.DeleteCollection(good),
		execInto(good), framework.Create(withLabel("banned", "x")).As("robot"), framework.Create(podWith("free", "p", func(pod *core.Pod) { pod.Labels = map[string]string{"banned": "x"} })),
	)
	secret := framework.Connect(good, "exec", &core.PodExecOptions{Container: "secret", Command: []string{"true"}})
	subject.Reject = []framework.Request{
		framework.Create(withLabel("banned", "x")), framework.Create(withLabel("broken", "x")), secret, framework.Delete(plainPod("policed", "kept")),
		framework.UpdateWith(good, func(pod *core.Pod) { pod.Labels["banned"] = "x" }), framework.Create(plainPod("absent", "p")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"S1", "it evaluates namespace selectors before rules: for a namespace that is not in the cache it asks the API server, for every resource; intended, because a cache may be stale", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"I1", "some injections are optional: the ID of the API server, resources to exclude, loaders of manifests; intended, although policies see reviews without the excluded resources", "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go:203"},
		{"I2", "called again, ValidateInitialization starts a goroutine that waits for the end of the API server; not intended: the source and the dispatcher are protected against this", "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go:248"},
		{"I4", "SetEnabled, SetMatcher, SetStaticManifestsDir and SetStaticSourceFactory are setters that the plugin itself or its tests call; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go:162"},
	}}
}

// excluded are requests that no policy and no webhook is asked about.
func excluded() []framework.Request {
	return []framework.Request{
		framework.Create(&admissionregistration.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "other"}}),
		framework.Create(&authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: "jane"}}),
	}
}

// policyConfigs are the configurations of a policy plugin. Directories of manifests are behind a gate
// of the process, which is off.
func policyConfigs(subject *contract.Subject, kind string) {
	config := "apiVersion: apiserver.config.k8s.io/v1\nkind: " + kind + "\n"
	subject.Config = config
	subject.Configs.Valid = []string{config}
	subject.Configs.Invalid = []string{"apiVersion: v1\nkind: Pod\n", config + "staticManifestsDir: relative\n"}
}

func mutatingPolicyEntry() entry {
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy.example.com"}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: matchPods(admissionv1.Create, admissionv1.Update, admissionv1.Connect), ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
		MatchConditions: []admissionv1.MatchCondition{{Name: "no-robots", Expression: "request.userInfo.username != 'robot'"}},
		FailurePolicy:   ptr.To(admissionv1.Fail),
		Mutations: []admissionv1.Mutation{
			{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: `has(object.metadata) && has(object.metadata.labels) && 'broken' in object.metadata.labels
				? [JSONPatch{op: "remove", path: "/metadata/nothing"}] : []`}},
			{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{
				Expression: `request.operation == "CONNECT" ? Object{} : Object{metadata: Object.metadata{labels: {"policed": "yes"}}}`}},
		},
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name}}
	subject := kubeSubject("MutatingAdmissionPolicy", policy, binding, storedNamespace("policed", policed), storedNamespace("free"))
	subject.Subresources = []string{"exec"}
	subject.Enforced = []string{"metadata.labels[policed]"} // by the policy
	subject.Source = harness.FromFactory(schooled)
	policyConfigs(&subject, "MutatingAdmissionPolicyConfiguration")
	image := func(pod *core.Pod) { pod.Spec.Containers[0].Image = "registry.example.com/main:2" }
	subject.Allow = append(excluded(),
		framework.Create(plainPod("policed", "p")), framework.Create(withLabel("policed", "no")), framework.UpdateWith(plainPod("policed", "p"), image),
		framework.Delete(plainPod("policed", "p")), execInto(plainPod("policed", "p")), framework.Create(plainPod("policed", "p")).As("robot"), framework.Create(plainPod("free", "p")),
	)
	subject.Reject = []framework.Request{framework.Create(withLabel("broken", "x")), framework.Create(plainPod("absent", "p"))}
	return entry{subject: subject, waivers: []waiver{
		{"S1", "it evaluates namespace selectors before rules: for a namespace that is not in the cache it asks the API server, for every resource; intended, because a cache may be stale", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go:95"},
		{"I1", "without feature gates, and without any injection, ValidateInitialization returns nil and the plugin is off; not intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go:206"},
		{"I2", "called again, ValidateInitialization starts a goroutine that waits for the end of the API server; not intended: the source and the dispatcher are protected against this", "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go:248"},
		{"I4", "SetEnabled, SetMatcher, SetStaticManifestsDir and SetStaticSourceFactory are setters that the plugin itself or its tests call; intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go:162"},
	}}
}
