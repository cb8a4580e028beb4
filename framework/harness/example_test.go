package harness_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName and Register belong to a plugin.
const PluginName = "NoLatest"

func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &noLatest{admission.NewHandler(admission.Create)}, nil
	})
}

// noLatest refuses images with the tag latest.
type noLatest struct{ *admission.Handler }

func (*noLatest) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	for _, container := range a.GetObject().(*corev1.Pod).Spec.Containers {
		if strings.HasSuffix(container.Image, ":latest") {
			return admission.NewForbidden(a, errors.New("image "+container.Image+" may change"))
		}
	}
	return nil
}

// printer is a framework.T that prints. In a test, use its *testing.T.
type printer struct{}

func (printer) Helper()                        {}
func (printer) Cleanup(func())                 {}
func (printer) Logf(format string, a ...any)   { fmt.Printf(format+"\n", a...) }
func (printer) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (printer) Fatalf(format string, a ...any) { fmt.Printf(format+"\n", a...) }

func Example() {
	t := printer{} // in a test, its *testing.T

	h := harness.New(t, harness.FromRegister(PluginName, Register))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "nginx:latest"}}}}

	h.Do(framework.Create(pod)).MustReject(t, metav1.StatusReasonForbidden, "may change")
	h.Do(framework.Create(pod)).MustAllow(t)
	// Output:
	// create v1 pods default/p by admissiontest
	// expected: admitted
	// actual:   403 Forbidden: pods "p" is forbidden: image nginx:latest may change
}

// pinned is a plugin that replaces the tag latest.
type pinned struct{ *admission.Handler }

func (*pinned) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	containers := a.GetObject().(*corev1.Pod).Spec.Containers
	for at := range containers {
		containers[at].Image = strings.Replace(containers[at].Image, ":latest", ":1.27", 1)
	}
	return nil
}

// Two plugins in a chain. With the first one turned off, the second one refuses.
func ExampleNewChain() {
	t := printer{} // in a test, its *testing.T

	pin := harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return &pinned{admission.NewHandler(admission.Create)}, nil
	}).Named("PinImages")
	chain := harness.Chain{Plugins: []harness.Source{pin, harness.FromRegister(PluginName, Register)}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "nginx:latest"}}}}

	result := harness.NewChain(t, chain).Do(framework.Create(pod)).MustAllow(t)
	for _, call := range result.Trace {
		fmt.Println(call.Phase, call.Plugin.Name, call.Plugin.Changed)
	}
	chain.DisablePlugins = []string{"PinImages"}
	harness.NewChain(t, chain).Do(framework.Create(pod)).MustReject(t, metav1.StatusReasonForbidden, "may change")
	// Output:
	// mutating PinImages [spec.containers[0].image]
	// validating NoLatest []
}
