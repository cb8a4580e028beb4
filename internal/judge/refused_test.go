package judge_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
)

func TestRefusedBy(t *testing.T) {
	for message, want := range map[string]judge.Refuser{
		`admission webhook "w.example.com" denied the request: not today`:                                                                 {Webhook: "w.example.com", Message: "not today"},
		`admission webhook "w.example.com" denied the request without explanation`:                                                        {Webhook: "w.example.com"},
		"admission webhook \"w.example.com\" denied the request: two\nlines":                                                              {Webhook: "w.example.com", Message: "two\nlines"},
		`configmaps "c" is forbidden: ValidatingAdmissionPolicy 'at-1-p' with binding 'at-1-b' denied request: no owner`:                  {Policy: "p", Binding: "b", Message: "no owner"},
		`configmaps is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: x`:                            {Policy: "p", Message: "failed to configure policy: x"},
		`deployments.apps "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: 'q' with binding 'c' is other`: {Policy: "p", Binding: "b", Message: "'q' with binding 'c' is other"},
		`policy 'at-1-m' with binding 'at-1-b' denied request: failed to configure binding: x`:                                            {Policy: "m", Binding: "b", Message: "failed to configure binding: x"},
		`policy "m" denied request: failed to configure policy: x`:                                                                        {Policy: "m", Message: "failed to configure policy: x"},
		// Those who only repeat such a text did not refuse.
		`admission webhook "w.example.com" denied the request: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x`: {Webhook: "w.example.com", Message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x"},
		`quota: admission webhook "w.example.com" denied the request: x`:                                                         {},
		`Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: refused`:                       {},
		`configmaps "c" is forbidden: User "ann" cannot create resource "configmaps"`:                                            {},
		``: {},
	} {
		if got := judge.RefusedBy(metav1.Status{Message: message}, "at-1-"); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", message, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	policy := judge.Refuser{Policy: "p", Binding: "b", Message: "no owner"}
	for name, test := range map[string]struct {
		expect scenario.RefusedBy
		got    judge.Refuser
		wrong  []string
	}{
		"policy":             {scenario.RefusedBy{Policy: "p", Binding: "b", Validation: "no owner"}, policy, nil},
		"webhook":            {scenario.RefusedBy{Webhook: "w"}, judge.Refuser{Webhook: "w", Message: "x"}, nil},
		"another policy":     {scenario.RefusedBy{Policy: "q"}, policy, []string{"refusedBy.policy"}},
		"another binding":    {scenario.RefusedBy{Policy: "p", Binding: "c"}, policy, []string{"refusedBy.binding"}},
		"a part of the text": {scenario.RefusedBy{Policy: "p", Validation: "owner"}, policy, []string{"refusedBy.validation"}},
		"a policy instead":   {scenario.RefusedBy{Webhook: "w"}, policy, []string{"refusedBy.webhook"}},
		"a webhook instead":  {scenario.RefusedBy{Policy: "p", Binding: "b"}, judge.Refuser{Webhook: "p"}, []string{"refusedBy.policy", "refusedBy.binding"}},
		"none is named":      {scenario.RefusedBy{Policy: "p"}, judge.Refuser{}, []string{"refusedBy.policy"}},
		"validation of none": {scenario.RefusedBy{Policy: "p", Validation: "x"}, judge.Refuser{Policy: "p"}, []string{"refusedBy.validation"}},
	} {
		var wrong []string
		for _, m := range judge.Refused(test.expect, test.got, metav1.Status{Code: 403}) {
			wrong = append(wrong, m.Path)
		}
		if strings.Join(wrong, " ") != strings.Join(test.wrong, " ") {
			t.Errorf("%s: got mismatches of %v, want %v", name, wrong, test.wrong)
		}
	}
}
