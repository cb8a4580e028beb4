package reference

import (
	"testing"

	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/storage"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// admitted returns the object that Admit has left, and not a copy of it, and the old one.
func admitted[T runtime.Object](t *testing.T, h *harness.Harness, request framework.Request) (object, old T) {
	t.Helper()
	attributes, err := h.Attributes(request, framework.Mutating)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Call(t.Context(), attributes, framework.Mutating)
	if err != nil || res.Err != nil {
		t.Fatal(err, res)
	}
	object = attributes.GetObject().(T)
	old, _ = attributes.GetOldObject().(T)
	return object, old
}

// Of an object of another type it logs the name, by the nil that the assertion left.
func TestFindingStorageProtectionPanics(t *testing.T) {
	class := &storage.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: "csi.example.com"}
	mustPanic(t, harnessOf(t, "StorageObjectInUseProtection"), framework.Create(class).AsUnstructured())
}

// What is written into the node selector of one pod is in the next pod of the class.
func TestFindingRuntimeClassSharesTheCache(t *testing.T) {
	h, gvisor := harnessOf(t, "RuntimeClass"), "full"
	request := framework.Create(podWith("default", "p", func(pod *core.Pod) { pod.Spec.RuntimeClassName = &gvisor }))
	first, _ := admitted[*core.Pod](t, h, request)
	first.Spec.NodeSelector["tenant"] = "blue"
	delete(first.Spec.Overhead, core.ResourceMemory)
	second, _ := admitted[*core.Pod](t, h, request)
	if second.Spec.NodeSelector["tenant"] != "blue" || len(second.Spec.Overhead) != 1 {
		t.Errorf("got %v and %v: is the defect fixed?", second.Spec.NodeSelector, second.Spec.Overhead)
	}
}

// What is written through the pointer in a claim renames the class in the cache.
func TestFindingDefaultStorageClassSharesTheCache(t *testing.T) {
	h := harnessOf(t, "DefaultStorageClass")
	first, _ := admitted[*core.PersistentVolumeClaim](t, h, framework.Create(claim("default", "1Gi")))
	*first.Spec.StorageClassName = "renamed"
	second, _ := admitted[*core.PersistentVolumeClaim](t, h, framework.Create(claim("default", "1Gi")))
	if *second.Spec.StorageClassName != "renamed" {
		t.Errorf("got %q: is the defect fixed?", *second.Spec.StorageClassName)
	}
}

// Before the cache of classes has synced, a claim goes without the class that there is.
func TestFindingDefaultStorageClassDoesNotWait(t *testing.T) {
	h := harnessOf(t, "DefaultStorageClass", fakes.Unsynced(&storagev1.StorageClass{}))
	res := h.Do(framework.Create(claim("default", "1Gi"))).MustAllow(t)
	if class := res.Object.(*core.PersistentVolumeClaim).Spec.StorageClassName; class != nil {
		t.Errorf("got class %q: is the defect fixed?", *class)
	}
}

// Before the cache of classes has synced, pods get priority 0 instead of that of the default
// class, pods of an existing class are refused, and a second default class is admitted.
func TestFindingPriorityDoesNotWait(t *testing.T) {
	h := harnessOf(t, "Priority", fakes.Unsynced(&schedulingv1.PriorityClass{}))
	res := h.Do(framework.Create(plainPod("default", "p"))).MustAllow(t)
	if got := res.Object.(*core.Pod).Spec.Priority; got == nil || *got != 0 {
		t.Errorf("got priority %v: is the defect fixed?", got)
	}
	high := podWith("default", "p", func(pod *core.Pod) { pod.Spec.PriorityClassName = "high" })
	h.Do(framework.Create(high)).MustReject(t, metav1.StatusReasonForbidden, "no PriorityClass with name high")
	h.Do(framework.Create(priorityClass("another", true))).MustAllow(t)
}

// A class that the API server has and the synced cache lacks is refused, without a call.
func TestFindingPriorityIgnoresNewClasses(t *testing.T) {
	high := podWith("default", "p", func(pod *core.Pod) { pod.Spec.PriorityClassName = "high" })
	res := harnessOf(t, "Priority", fakes.StaleCache()).Do(framework.Create(high)).MustReject(t, metav1.StatusReasonForbidden, "no PriorityClass with name high")
	if len(res.Calls) > 0 {
		t.Errorf("it made calls: is the defect fixed?\n%s", res.Calls)
	}
}

// The priority of an updated pod is that of the old one, the same in memory.
func TestFindingPrioritySharesTheOldPod(t *testing.T) {
	n := int32(1000)
	stored := podWith("default", "p", func(pod *core.Pod) { pod.Spec.PriorityClassName, pod.Spec.Priority = "high", &n })
	updated, old := admitted[*core.Pod](t, harnessOf(t, "Priority"), framework.UpdateWith(stored, func(pod *core.Pod) { pod.Spec.Priority = nil }))
	if updated.Spec.Priority != old.Spec.Priority {
		t.Error("the two have each their own: is the defect fixed?")
	}
}

// The toleration seconds of all pods are one in memory, the plugin's or its configuration's.
func TestFindingTolerationSecondsAreShared(t *testing.T) {
	for _, name := range []string{"DefaultTolerationSeconds", "PodTolerationRestriction"} {
		t.Run(name, func(t *testing.T) {
			h := harnessOf(t, name)
			write := func(n int64) (was int64) {
				pod, _ := admitted[*core.Pod](t, h, framework.Create(plainPod("plain", "p")))
				for _, each := range pod.Spec.Tolerations {
					if each.TolerationSeconds != nil {
						was, *each.TolerationSeconds = *each.TolerationSeconds, n
					}
				}
				return was
			}
			write(7)
			if got := write(7); got != 7 {
				t.Errorf("got %d: is the defect fixed?", got)
			}
		})
	}
}

func TestFindingPodTolerationRestrictionRefusesWith500(t *testing.T) {
	h := harnessOf(t, "PodTolerationRestriction")
	alien := podWith("blue", "p", tolerates("alien", core.TaintEffectNoSchedule))
	mustBe500(t, h.Do(framework.Create(alien)), metav1.StatusReasonUnknown)
	mustBe500(t, h.Do(framework.Create(plainPod("broken", "p"))), metav1.StatusReasonUnknown) // its annotation is not JSON
}

// One instance of RuntimeClass asks for what its cache lacks: it is right before it syncs.
func TestRuntimeClassLooksUpLive(t *testing.T) {
	gvisor := "full"
	request := framework.Create(podWith("default", "p", func(pod *core.Pod) { pod.Spec.RuntimeClassName = &gvisor }))
	res := harnessOf(t, "RuntimeClass", fakes.Unsynced(&nodev1.RuntimeClass{})).Do(request).MustAllow(t)
	if len(res.Object.(*core.Pod).Spec.Overhead) != 2 {
		t.Errorf("%s", res)
	}
}
