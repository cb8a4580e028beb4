package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

// podOf is a pod of a service account, that edits have changed.
func podOf(account string, edits ...func(*core.Pod)) *core.Pod {
	return podWith("default", "p", func(pod *core.Pod) {
		pod.Spec.ServiceAccountName = account
		for _, edit := range edits {
			edit(pod)
		}
	})
}

func mountSecret(name string) func(*core.Pod) {
	return func(pod *core.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: "s", VolumeSource: core.VolumeSource{Secret: &core.SecretVolumeSource{SecretName: name}}})
	}
}

func envOf(secret string) []core.EnvVar {
	return []core.EnvVar{{Name: "S", ValueFrom: &core.EnvVarSource{SecretKeyRef: &core.SecretKeySelector{
		LocalObjectReference: core.LocalObjectReference{Name: secret}, Key: "k",
	}}}}
}

func mirrored(pod *core.Pod) {
	pod.Annotations = map[string]string{core.MirrorPodAnnotationKey: "hash"}
}

// debugged is kubectl debug, with a variable from a secret.
func debugged(account, secret string) framework.Request {
	return framework.UpdateWith(podOf(account), func(pod *core.Pod) {
		pod.Spec.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{
			Name: "debug", Image: "registry.example.com/debug:1", Env: envOf(secret),
		}}}
	}).WithSubresource("ephemeralcontainers")
}

func serviceAccountEntry() entry {
	no := false
	account := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	strict := &corev1.ServiceAccount{
		ObjectMeta: account("strict"), Secrets: []corev1.ObjectReference{{Name: "own"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
	}
	strict.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}
	subject := kubeSubject("ServiceAccount", strict,
		&corev1.ServiceAccount{ObjectMeta: account("default"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}},
		&corev1.ServiceAccount{ObjectMeta: account("quiet"), AutomountServiceAccountToken: &no})
	subject.Subresources = []string{"ephemeralcontainers"}
	subject.Enforced = []string{"spec.deprecatedServiceAccount"} // another name of spec.serviceAccountName
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(podOf("quiet")), framework.Create(podOf("", mirrored)),
		framework.Create(podOf("strict", mountSecret("own"))), framework.UpdateWith(podOf("default"), labelPod),
		framework.Create(podOf("default", func(pod *core.Pod) {
			pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1"}}
			pod.Spec.Containers[0].VolumeMounts = []core.VolumeMount{{Name: "own", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
		})),
		debugged("default", "any"), debugged("strict", "own"), bindingOf(podOf("default"), "node"),
	}
	subject.Reject = []framework.Request{
		framework.Create(podOf("nobody")), framework.Create(podOf("default", mirrored)), framework.Create(podOf("", mirrored, mountSecret("own"))),
		framework.Create(podOf("strict", mountSecret("other"))),
		framework.Create(podOf("strict", func(pod *core.Pod) { pod.Spec.Containers[0].Env = envOf("other") })),
		framework.Create(podOf("strict", func(pod *core.Pod) { pod.Spec.ImagePullSecrets = []core.LocalObjectReference{{Name: "other"}} })),
		debugged("strict", "other"), debugged("nobody", "any"),
	}
	return entry{subject: subject, waivers: []waiver{
		{"E1", "it refuses an ephemeral container that uses a secret with a plain error, so the client gets 500 of unknown reason; not intended: for other containers it is 403", "plugin/pkg/admission/serviceaccount/admission.go:403"},
		{"X1", "its call (get serviceaccounts) uses context.TODO(): it does not end with the request and has no deadline; historical", "plugin/pkg/admission/serviceaccount/admission.go:305"},
		{"F4", "if the read of the service account fails, it refuses with 403; known since 2017 and kept (https://github.com/kubernetes/kubernetes/pull/55373)", "plugin/pkg/admission/serviceaccount/admission.go:164"},
		{"T2", "the volume of the token has a random name; intended", "plugin/pkg/admission/serviceaccount/admission.go:434"},
	}}
}
