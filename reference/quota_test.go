package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/authorization"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
)

// resourceQuota is one of "hard" resources of which nothing is used yet.
func resourceQuota(namespace string, hard corev1.ResourceList, edits ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
		Status:     corev1.ResourceQuotaStatus{Hard: hard.DeepCopy(), Used: corev1.ResourceList{}},
	}
	for name := range hard {
		quota.Status.Used[name] = quantities[corev1.ResourceName]("n", "0")["n"]
	}
	for _, edit := range edits {
		edit(quota)
	}
	return quota
}

const limitedClaims = `apiVersion: apiserver.config.k8s.io/v1
kind: ResourceQuotaConfiguration
limitedResources:
- resource: persistentvolumeclaims
  matchContains:
  - requests.storage
`

func resourceQuotaEntry() entry {
	subject := kubeSubject("ResourceQuota",
		resourceQuota("limited", quantities[corev1.ResourceName]("pods", "5", "requests.cpu", "2", "services", "1", "count/deployments.apps", "1", "requests.storage", "10Gi")),
		resourceQuota("spent", quantities[corev1.ResourceName]("pods", "1", "count/configmaps", "1"), func(q *corev1.ResourceQuota) {
			q.Status.Used = q.Status.Hard.DeepCopy()
		}),
		resourceQuota("unknown", quantities[corev1.ResourceName]("pods", "1"), func(q *corev1.ResourceQuota) { q.Status.Used = nil }))
	subject.Inject = func(w *fakes.World) []fakes.Injector {
		configuration, err := install.NewQuotaConfigurationForAdmission(w.Informers(), nil)
		if err != nil {
			return nil // the Initializer's own quota counts nothing, which the Reject requests find
		}
		return []fakes.Injector{fakes.InjectQuotaConfiguration(configuration)}
	}
	subject.Subresources = []string{"resize", "status"} // the status of a claim has a size
	subject.Config = limitedClaims
	subject.Configs.Valid = []string{limitedClaims, "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n"}
	subject.Configs.Invalid = []string{
		"apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResources:\n- matchContains: [cpu]\n", "kind: Pod\n",
	}
	stored := func(pod *core.Pod) *core.Pod {
		pod.ResourceVersion = "7"
		return pod
	}
	more := func(cpu string) func(*core.Pod) {
		return func(pod *core.Pod) {
			pod.Spec.Containers[0].Resources.Requests = quantities[core.ResourceName]("cpu", cpu)
		}
	}
	deployment := func(namespace string) *apps.Deployment {
		return &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "d"}}
	}
	settings := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "spent", Name: "c"}}
	review := &authorization.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "spent"}}
	subject.Allow = []framework.Request{
		framework.Create(sized("limited", "", "1")), framework.UpdateWith(stored(sized("limited", "", "1")), more("1500m")).WithSubresource("resize"),
		framework.UpdateWith(stored(sized("limited", "", "1")), labelPod), framework.UpdateWith(stored(sized("limited", "", "1")), more("3")),
		framework.Create(deployment("limited")), framework.Create(claim("limited", "1Gi")), framework.Delete(sized("spent", "", "1")),
		framework.Create(plainPod("free", "p")), framework.Create(internalNamespace("new")), framework.Create(&core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}),
		framework.Create(review).InNamespace("spent"), bindingOf(sized("spent", "", "1"), "node"), execInto(sized("spent", "", "1")),
	}
	subject.Reject = []framework.Request{
		framework.Create(sized("limited", "", "3")), framework.Create(plainPod("limited", "p")), framework.Create(plainPod("spent", "p")),
		framework.UpdateWith(stored(sized("limited", "", "1")), more("4")).WithSubresource("resize"), framework.Create(plainPod("unknown", "p")),
		framework.Create(settings), framework.Create(claim("limited", "20Gi")), framework.Create(claim("free", "1Gi")), framework.CreateOnUpdate(settings),
	}
	return entry{subject: subject, waivers: []waiver{
		{"X1", "its call (update resourcequotas/status) uses context.TODO(), in a worker: it does not end with the request and has no deadline; a worker serves several requests at once", "staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/resource_access.go:80"},
		{"I3", "if the quota configuration is injected before the drained notification, ValidateInitialization fails, even after a later injection in the right order; the order of kube-apiserver is expected", "staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/admission.go:125"},
		{"R3", "it asks the API server only until its cache has synced; after that a claim of a limited resource is refused right after its quota was created; not intended", "staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/resource_access.go:120"},
	}}
}
