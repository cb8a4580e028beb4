package rules_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// mending sets a label in Admit, and refuses pods without it in Validate. It refuses only if
// another client has removed the label between the phases.
type mending struct {
	*admission.Handler
	refusal func(admission.Attributes) error
}

func (m mending) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok {
		pod.Labels = map[string]string{"mended": "true"}
	}
	return nil
}

func (m mending) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok && pod.Labels["mended"] == "" {
		return m.refusal(a)
	}
	return nil
}

func TestRefusalsOfValidateAlone(t *testing.T) {
	for name, refusal := range map[string]func(admission.Attributes) error{
		"plain":  func(admission.Attributes) error { return errors.New("not mended") },
		"status": func(a admission.Attributes) error { return admission.NewForbidden(a, errors.New("not mended")) },
	} {
		t.Run(name, func(t *testing.T) {
			outcomes, _ := checkRules(check.Subject{
				Source: harness.FromFactory(func(io.Reader) (admission.Interface, error) {
					return mending{admission.NewHandler(admission.Create), refusal}, nil
				}),
				Allow: []framework.Request{framework.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}})},
			}, "E1", "E2", "E3")
			for _, outcome := range outcomes {
				expected := framework.Pass
				if name == "plain" && outcome.Rule.ID == "E1" {
					expected = framework.Fail
				}
				if name == "plain" && outcome.Rule.ID == "E2" {
					expected = framework.Inconclusive // it is not a 403
				}
				if outcome.Verdict != expected || expected == framework.Fail && !strings.Contains(outcome.Reason, "errorString") {
					t.Errorf("%s is %s (%s), want %s", outcome.Rule.ID, outcome.Verdict, outcome.Reason, expected)
				}
			}
		})
	}
}
