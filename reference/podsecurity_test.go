package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/fakes/effectiveversion"
	"github.com/admissiontest/admissiontest/framework"
)

// leveled has a namespace ask for a level, in one or more modes.
func leveled(level string, modes ...string) map[string]string {
	set := map[string]string{}
	for _, mode := range modes {
		set["pod-security.kubernetes.io/"+mode] = level
	}
	return set
}

func onHostNetwork(pod *core.Pod) {
	pod.Spec.HostNetwork = true
}

func hardened(pod *core.Pod) {
	yes, no := true, false
	pod.Spec.SecurityContext = &core.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &core.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}}
}

func deploymentOf(pod *core.Pod) *apps.Deployment {
	return &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "d"}, Spec: apps.DeploymentSpec{Template: core.PodTemplateSpec{Spec: pod.Spec}}}
}

func podSecurityEntry() entry {
	labeled := func(name string, labels map[string]string) *corev1.Namespace {
		return storedNamespace(name, func(n *corev1.Namespace) { n.Labels = labels })
	}
	subject := kubeSubject("PodSecurity", storedNamespace("open"), storedNamespace("kube-system"), labeled("restricted", leveled("restricted", "enforce")),
		labeled("baseline", leveled("baseline", "enforce")), labeled("warned", leveled("restricted", "warn", "audit")), labeled("misspelt", leveled("restrictd", "enforce", "warn")),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "open", Name: "stored"}, Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{effectiveversion.Inject(compatibility.NewEffectiveVersionFromString("1.37", "", ""))}
	}
	subject.AnnotationPrefix = "pod-security.kubernetes.io/"
	subject.Subresources = []string{"bogus", "scale", "resize", "ephemeralcontainers"} // of pods it knows which to ignore, and looks at all others
	head := "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"
	subject.Config = head + "defaults:\n  enforce: privileged\nexemptions:\n  namespaces: [kube-system]\n  usernames: [trusted]\n  runtimeClasses: [sandbox]\n"
	subject.Configs.Valid = []string{head + "defaults:\n  enforce: baseline\n  enforce-version: v1.30\n"}
	subject.Configs.Invalid = []string{head + "defaults: []\n", head + "defaults:\n  enfroce: baseline\n"}
	namespace := func(labels map[string]string) *core.Namespace {
		n := internalNamespace("open")
		n.Labels = labels
		return n
	}
	relabel := func(from, to map[string]string) framework.Request {
		return framework.Update(namespace(from), namespace(to))
	}
	bad, good := podWith("restricted", "p", onHostNetwork), podWith("restricted", "p", hardened)
	sandboxed := podWith("restricted", "p", func(pod *core.Pod) { class := "sandbox"; pod.Spec.RuntimeClassName = &class })
	image := func(pod *core.Pod) { pod.Spec.Containers[0].Image = "registry.example.com/main:2" }
	subject.Allow = []framework.Request{
		framework.Create(podWith("open", "p", onHostNetwork)), framework.Create(good), framework.Create(plainPod("baseline", "p")), framework.Create(sandboxed),
		framework.Create(podWith("warned", "p", onHostNetwork)), framework.Create(deploymentOf(podWith("warned", "p", onHostNetwork))), framework.Create(deploymentOf(bad)),
		framework.UpdateWith(bad, labelPod), framework.Create(bad).As("trusted"), framework.Create(podWith("kube-system", "p", onHostNetwork)),
		framework.Create(namespace(leveled("restricted", "enforce"))), relabel(nil, leveled("restricted", "enforce")), relabel(leveled("nonsense", "warn"), leveled("nonsense", "warn")),
		bindingOf(bad, "node"), framework.Create(deploymentOf(plainPod("misspelt", "p"))), framework.Create(deploymentOf(plainPod("absent", "p"))),
	}
	subject.Reject = []framework.Request{
		framework.Create(bad), framework.Create(podWith("baseline", "p", onHostNetwork)), framework.Create(plainPod("misspelt", "p")), framework.UpdateWith(bad, image),
		framework.Create(namespace(leveled("nonsense", "warn"))), relabel(nil, leveled("nonsense", "enforce")),
		framework.UpdateWith(good, func(pod *core.Pod) {
			pod.Spec.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "debug", Image: "registry.example.com/debug:1"}}}
		}).WithSubresource("ephemeralcontainers"),
		framework.Create(plainPod("absent", "p")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"I3", "if the effective version is injected last, there is no evaluator and ValidateInitialization fails; documented order", "plugin/pkg/admission/security/podsecurity/admission.go:161"},
	}}
}
