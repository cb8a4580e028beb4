package reference

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/storage"

	"github.com/admissiontest/admissiontest/framework"
)

// storedClass is a storage class of the World.
func storedClass(name string, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "csi.example.com"}
	for _, edit := range edits {
		edit(class)
	}
	return class
}

func defaultClass(class *storagev1.StorageClass) {
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
}

// claimOf is a claim of a class.
func claimOf(class string, edits ...func(*core.PersistentVolumeClaim)) *core.PersistentVolumeClaim {
	wanted := claim("default", "1Gi")
	wanted.Spec.StorageClassName = &class
	for _, edit := range edits {
		edit(wanted)
	}
	return wanted
}

func bound(claim *core.PersistentVolumeClaim) { claim.Status.Phase = core.ClaimBound }

// finalized adds finalizers to an object.
func finalized[T metav1.Object](object T, finalizers ...string) T {
	object.SetFinalizers(finalizers)
	return object
}

func defaultStorageEntry() entry {
	older := func(class *storagev1.StorageClass) {
		class.CreationTimestamp = metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	}
	subject := kubeSubject("DefaultStorageClass", storedClass("fast"),
		storedClass("old", defaultClass, older), storedClass("b", defaultClass), storedClass("a", defaultClass))
	beta := claim("default", "1Gi")
	beta.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": "fast"}
	subject.Allow = []framework.Request{
		framework.Create(claim("default", "1Gi")), framework.CreateOnUpdate(claim("default", "1Gi")),
		framework.Create(claimOf("fast")), framework.Create(claimOf("")), framework.Create(beta),
		framework.UpdateWith(claimOf("fast"), bound), framework.UpdateWith(claimOf("fast"), bound).WithSubresource("status"),
		framework.Create(plainPod("default", "p")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"C2", "the claim has a pointer to the name of the class in the cache; not intended", "plugin/pkg/admission/storage/storageclass/setdefault/admission.go:118"},
		{"R1", "before the cache of classes has synced, a claim does not get the default class; it registers HasSynced and never waits for it", "plugin/pkg/admission/storage/storageclass/setdefault/admission.go:108"},
	}}
}

func storageProtectionEntry() entry {
	volume := func() *core.PersistentVolume {
		return &core.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: core.PersistentVolumeSpec{
			Capacity: quantities[core.ResourceName]("storage", "1Gi"), PersistentVolumeSource: core.PersistentVolumeSource{CSI: &core.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "h"}},
		}}
	}
	attributes := func() *storage.VolumeAttributesClass {
		return &storage.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: "csi.example.com", Parameters: map[string]string{"iops": "9000"}}
	}
	subject := kubeSubject("StorageObjectInUseProtection")
	subject.Allow = []framework.Request{
		framework.Create(claim("default", "1Gi")), framework.Create(volume()), framework.Create(attributes()),
		framework.Create(finalized(claim("default", "1Gi"), "example.com/f")), framework.CreateOnUpdate(finalized(volume(), "example.com/f")),
		framework.Create(finalized(claim("default", "1Gi"), "kubernetes.io/pvc-protection")),
		framework.Create(finalized(volume(), "kubernetes.io/pv-protection")),
		framework.Create(finalized(attributes(), "kubernetes.io/vac-protection")),
		framework.UpdateWith(claimOf("fast"), bound), framework.Create(plainPod("default", "p")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"P2", "for an object that is not a VolumeAttributesClass it logs the name of a nil pointer, and panics; not intended", "plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go:140"},
	}}
}

func claimResizeEntry() entry {
	yes, no := true, false
	subject := kubeSubject("PersistentVolumeClaimResize",
		storedClass("elastic", func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = &yes }),
		storedClass("rigid", func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = &no }), storedClass("silent"))
	to := func(size string) func(*core.PersistentVolumeClaim) {
		return func(c *core.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = quantities[core.ResourceName]("storage", size)
		}
	}
	move := func(c *core.PersistentVolumeClaim) {
		other := "silent"
		to("2Gi")(c)
		c.Spec.StorageClassName = &other
	}
	classless := claim("default", "1Gi")
	bound(classless)
	subject.Allow = []framework.Request{
		framework.UpdateWith(claimOf("elastic", bound), to("2Gi")), framework.UpdateWith(claimOf("rigid", bound), to("1Gi")),
		framework.UpdateWith(claimOf("rigid", bound), to("500Mi")), framework.Create(claimOf("rigid")),
		framework.UpdateWith(claimOf("rigid"), to("2Gi")).WithSubresource("status"), framework.UpdateWith(plainPod("default", "p"), labelPod),
	}
	subject.Reject = []framework.Request{
		framework.UpdateWith(claimOf("elastic"), to("2Gi")), framework.UpdateWith(claimOf("rigid", bound), to("2Gi")),
		framework.UpdateWith(claimOf("silent", bound), to("2Gi")), framework.UpdateWith(claimOf("absent", bound), to("2Gi")),
		framework.UpdateWith(claimOf("elastic", bound), move), framework.UpdateWith(classless, to("2Gi")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"R3", "it asks only its cache: a claim of a class that the cache does not have yet cannot be resized; not intended", "plugin/pkg/admission/storage/persistentvolume/resize/admission.go:123"},
	}}
}
