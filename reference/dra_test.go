package reference

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// TestQuotaOfDevices: kube-apiserver's quota evaluators count the devices of resource claims, by
// device class and, with an event handler for device classes, by extended resource.
func TestQuotaOfDevices(t *testing.T) {
	gpu := "example.com/gpu"
	limited := func(namespace string, name corev1.ResourceName) *corev1.ResourceQuota {
		hard := corev1.ResourceList{name: quantity.MustParse("2")}
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
			Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{name: quantity.MustParse("0")}},
		}
	}
	w := fakes.NewWorld(t, fakes.WithObjects(
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}},
		limited("by-class", corev1.ResourceName("gold"+corev1.ResourceClaimsPerClass)),
		limited("by-extended-resource", "requests."+corev1.ResourceName(gpu))))
	configuration, err := install.NewQuotaConfigurationForAdmission(w.Informers(), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := harness.New(t, fromKubernetes("ResourceQuota"), harness.WithWorld(w), harness.WithScheme(legacyscheme.Scheme),
		harness.WithInjectors(fakes.InjectQuotaConfiguration(configuration)))
	claim := func(namespace string, devices int64) framework.Request {
		return framework.Create(&resource.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: namespace},
			Spec: resource.ResourceClaimSpec{Devices: resource.DeviceClaim{Requests: []resource.DeviceRequest{{
				Name: "r", Exactly: &resource.ExactDeviceRequest{DeviceClassName: "gold", AllocationMode: resource.DeviceAllocationModeExactCount, Count: devices},
			}}}},
		})
	}
	h.Do(claim("by-class", 3)).MustReject(t, metav1.StatusReasonForbidden, "exceeded quota")
	h.Do(claim("by-class", 2)).MustAllow(t)
	h.Do(claim("by-class", 1)).MustReject(t, metav1.StatusReasonForbidden, "exceeded quota")

	h.Do(claim("by-extended-resource", 3)).MustAllow(t) // the class has none yet
	w.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &gpu}})
	h.Do(claim("by-extended-resource", 3)).MustReject(t, metav1.StatusReasonForbidden, "exceeded quota")
	h.Do(claim("by-extended-resource", 2)).MustAllow(t)
}
