package contract_test

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// forbidden is a plugin that refuses pods with a label.
type forbidden struct {
	*admission.Handler
	// appends means that Admit adds a toleration each time, which breaks A1.
	appends bool
}

// forbiddenLabel is the label of pods that the plugin refuses.
const forbiddenLabel = "forbidden"

func (p *forbidden) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod := podOf(a); pod != nil && p.appends && len(pod.Spec.Tolerations) < 2 {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists})
	}
	return nil
}

func (p *forbidden) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	switch {
	case pod != nil && pod.Labels[forbiddenLabel] == "true":
		return admission.NewForbidden(a, errors.New("the pod is forbidden"))
	case pod == nil && createsPod(a):
		return apierrors.NewBadRequest("the object is no pod")
	default:
		return nil
	}
}

func createsPod(a admission.Attributes) bool {
	return a.GetOperation() == admission.Create && a.GetResource().GroupResource() == corev1.Resource("pods") && a.GetSubresource() == ""
}

// podOf returns the pod that a request creates; nil for other requests.
func podOf(a admission.Attributes) *corev1.Pod {
	if !createsPod(a) {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}

// register registers the plugin.
func register(plugins *admission.Plugins) {
	plugins.Register("Forbidden", func(io.Reader) (admission.Interface, error) {
		return &forbidden{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// subject is the plugin with one request that it admits and one that it refuses.
func subject() contract.Subject {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	refused := pod.DeepCopy()
	refused.Labels = map[string]string{forbiddenLabel: "true"}
	return contract.Subject{
		Name:   "Forbidden",
		Source: harness.FromRegister("Forbidden", register),
		Allow:  []framework.Request{framework.Create(pod)},
		Reject: []framework.Request{framework.Create(refused)},
	}
}

// appending is the plugin whose Admit is not idempotent.
func appending() contract.Subject {
	broken := subject()
	broken.Source = harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return &forbidden{Handler: admission.NewHandler(admission.Create), appends: true}, nil
	})
	return broken
}
