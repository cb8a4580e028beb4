package reference

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

// quantities reads "cpu", "1", "memory", "64Mi".
func quantities[K ~string](pairs ...string) map[K]resource.Quantity {
	list := map[K]resource.Quantity{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[K(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limitRange(namespace, name string, limits ...corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.LimitRangeSpec{Limits: limits}}
}

// sized is a pod whose container has these limits and requests of cpu; empty is none.
func sized(namespace, limit, request string) *core.Pod {
	return podWith(namespace, "p", func(pod *core.Pod) {
		if limit != "" {
			pod.Spec.Containers[0].Resources.Limits = quantities[core.ResourceName]("cpu", limit)
		}
		if request != "" {
			pod.Spec.Containers[0].Resources.Requests = quantities[core.ResourceName]("cpu", request)
		}
	})
}

func claim(namespace, size string) *core.PersistentVolumeClaim {
	return &core.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec:       core.PersistentVolumeClaimSpec{Resources: core.VolumeResourceRequirements{Requests: quantities[core.ResourceName]("storage", size)}},
	}
}

// wrongInManyWays breaks several limits in each of its containers.
func wrongInManyWays() *core.Pod {
	return podWith("limited", "many", func(pod *core.Pod) {
		for i := range 10 {
			pod.Spec.Containers = append(pod.Spec.Containers, core.Container{
				Name: fmt.Sprintf("c%d", i), Image: "registry.example.com/c:1",
				Resources: core.ResourceRequirements{Requests: quantities[core.ResourceName](
					"cpu", fmt.Sprintf("%dm", i+1), "memory", fmt.Sprintf("%dKi", i+1), "ephemeral-storage", fmt.Sprintf("%dKi", i+1))},
			})
		}
	})
}

func limitRangerEntry() entry {
	container := corev1.LimitRangeItem{
		Type: corev1.LimitTypeContainer, Default: quantities[corev1.ResourceName]("cpu", "500m", "memory", "64Mi", "ephemeral-storage", "1Gi"),
		DefaultRequest: quantities[corev1.ResourceName]("cpu", "100m"), Max: quantities[corev1.ResourceName]("cpu", "2"),
		Min:                  quantities[corev1.ResourceName]("cpu", "50m", "memory", "1Mi", "ephemeral-storage", "1Mi"),
		MaxLimitRequestRatio: quantities[corev1.ResourceName]("cpu", "10"),
	}
	container.DefaultRequest["memory"], container.DefaultRequest["ephemeral-storage"] = resource.MustParse("32Mi"), resource.MustParse("1Gi")
	defaulting := func(cpu string) corev1.LimitRangeItem {
		return corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: quantities[corev1.ResourceName]("cpu", cpu), DefaultRequest: quantities[corev1.ResourceName]("cpu", cpu)}
	}
	subject := kubeSubject("LimitRanger",
		limitRange("limited", "all", container,
			corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Min: quantities[corev1.ResourceName]("storage", "1Gi"), Max: quantities[corev1.ResourceName]("storage", "10Gi")}),
		limitRange("several", "a", defaulting("500m")), limitRange("several", "b", defaulting("900m")),
		limitRange("whole", "pods", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: quantities[corev1.ResourceName]("cpu", "1")}))
	subject.Subresources = []string{"resize"}
	subject.Enforced = []string{"metadata.annotations[kubernetes.io/limit-ranger]"} // says what it has set
	small, ending := sized("limited", "1", "1"), sized("limited", "1", "1")
	now := metav1.Now()
	ending.DeletionTimestamp, ending.Finalizers = &now, []string{"example.com/f"}
	grow := func(pod *core.Pod) {
		pod.Spec.Containers[0].Resources.Limits = quantities[core.ResourceName]("cpu", "3")
	}
	resize := func(pod *core.Pod, edit func(*core.Pod)) framework.Request {
		return framework.UpdateWith(pod, edit).WithSubresource("resize")
	}
	atPodLevel := podWith("whole", "p", func(pod *core.Pod) {
		pod.Spec.Resources = &core.ResourceRequirements{Limits: quantities[core.ResourceName]("cpu", "500m"), Requests: quantities[core.ResourceName]("cpu", "500m")}
	})
	withInit := podWith("limited", "p", func(pod *core.Pod) {
		pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1"}}
	})
	subject.Allow = []framework.Request{
		framework.Create(plainPod("limited", "p")), framework.Create(withInit), framework.Create(small),
		framework.Create(plainPod("several", "p")), framework.Create(plainPod("free", "p")), framework.Create(atPodLevel),
		framework.Create(claim("limited", "5Gi")), framework.UpdateWith(claim("limited", "5Gi"), func(c *core.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = quantities[core.ResourceName]("storage", "6Gi")
		}),
		framework.UpdateWith(small, labelPod), resize(small, labelPod), resize(ending, grow), bindingOf(small, "node"),
	}
	subject.Reject = []framework.Request{
		framework.Create(sized("limited", "3", "1")), framework.Create(sized("limited", "1", "1m")), framework.Create(sized("limited", "2", "60m")),
		framework.Create(plainPod("whole", "p")), framework.Create(wrongInManyWays()), resize(small, grow),
		framework.Create(claim("limited", "20Gi")), framework.Create(claim("limited", "1Mi")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"P2", "it asserts the type of the object without a check, and panics for other types; not intended", "plugin/pkg/admission/limitranger/admission.go:400"},
		{"E3", "it iterates over maps of limits, so the order of several violations in the message varies; not intended", "plugin/pkg/admission/limitranger/admission.go:496"},
		{"X1", "its call (list limitranges) uses context.TODO(): it does not end with the request and has no deadline; historical", "plugin/pkg/admission/limitranger/admission.go:173"},
		{"F4", "if the list of LimitRanges fails, it refuses with 403 and hides that the API server failed; historical", "plugin/pkg/admission/limitranger/admission.go:175"},
		{"I5", "it reads the global gate PodLevelResources for each request; no gates are injected", "plugin/pkg/admission/limitranger/admission.go:535"},
		{"T2", "of several LimitRanges in a namespace, the first one from the lister sets the defaults; documented", "plugin/pkg/admission/limitranger/admission.go:143"},
	}}
}
