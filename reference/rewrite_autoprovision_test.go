package reference

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/namespace/autoprovision"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// The five tests of plugin/pkg/admission/namespace/autoprovision/admission_test.go, which
// has 134 lines of code for them.
func TestAutoProvision(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "test"}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
	exists := apierrors.NewAlreadyExists(corev1.Resource("namespaces"), "test")
	for name, tc := range map[string]struct {
		have    []runtime.Object
		fail    error
		req     framework.Request
		created bool
		ignored bool
	}{
		"missing namespace is created": {req: framework.Create(pod), created: true},
		"existing namespace is kept":   {have: []runtime.Object{ns}, req: framework.Create(pod)},
		"dry run writes nothing":       {req: framework.Create(pod).WithDryRun()},
		"updates are ignored":          {req: framework.UpdateWith(pod, func(p *core.Pod) { p.Labels = map[string]string{"a": "b"} }), ignored: true},
		"lost race is fine":            {fail: exists, req: framework.Create(pod), created: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakes.NewWorld(t, fakes.WithObjects(tc.have...))
			w.FailOn("create", "namespaces", tc.fail)
			h := harness.New(t, harness.FromRegister(autoprovision.PluginName, autoprovision.Register), harness.WithWorld(w), harness.WithScheme(legacyscheme.Scheme))
			res := h.Do(tc.req)
			if tc.ignored {
				res.MustIgnore(t)
			} else {
				res.MustAllow(t)
			}
			if got := res.Calls.Has("create", "namespaces"); got != tc.created {
				t.Fatalf("created=%v, want %v\n%s", got, tc.created, res.Calls)
			}
		})
	}
}
