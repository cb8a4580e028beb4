package harness_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// TestQuotaEvaluators: apiserver's ResourceQuota counts with the evaluators of fakes.Quota, and
// writes what is used.
func TestQuotaEvaluators(t *testing.T) {
	claims := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	name := generic.ObjectCountQuotaResourceNameFor(claims)
	limit := corev1.ResourceList{name: resource.MustParse("2")}
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "test"},
		Spec:       corev1.ResourceQuotaSpec{Hard: limit},
		Status:     corev1.ResourceQuotaStatus{Hard: limit, Used: corev1.ResourceList{name: resource.MustParse("0")}},
	}))
	quota := fakes.Quota(nil, generic.NewObjectCountEvaluator(claims, nil, ""))
	h := harness.New(t, harness.FromRegister("ResourceQuota", resourcequota.Register),
		harness.WithWorld(w), harness.WithInjectors(fakes.InjectQuotaConfiguration(quota)))
	claim := func(namespace string) framework.Request {
		return framework.Create(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: namespace}})
	}
	h.Do(claim("test")).MustAllow(t)
	h.Do(claim("test").WithDryRun()).MustAllow(t)
	h.Do(claim("test")).MustAllow(t)
	h.Do(claim("test")).MustReject(t, metav1.StatusReasonForbidden, "exceeded quota: q", "used: "+string(name)+"=2")
	h.Do(claim("other")).MustAllow(t)
	h.Do(framework.Create(pod("p"))).MustAllow(t)

	stored, err := w.TestClient().CoreV1().ResourceQuotas("test").Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if used := stored.Status.Used[name]; used.Value() != 2 {
		t.Errorf("the stored quota has %s used, want 2", used.String())
	}
	if writes := w.Calls().Writes(); len(writes) != 2 || !writes.Has("update", "resourcequotas/status") {
		t.Errorf("got writes\n%s\nwant two of the status of the quota", writes)
	}
}
