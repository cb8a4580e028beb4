package expect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

func TestRefusedBy(t *testing.T) {
	for message, want := range map[string]expect.Refuser{
		`admission webhook "w.example.com" denied the request: not today`:                                                                 {Webhook: "w.example.com", Message: "not today"},
		`admission webhook "w.example.com" denied the request without explanation`:                                                        {Webhook: "w.example.com"},
		"admission webhook \"w.example.com\" denied the request: two\nlines":                                                              {Webhook: "w.example.com", Message: "two\nlines"},
		`configmaps "c" is forbidden: ValidatingAdmissionPolicy 'at-1-p' with binding 'at-1-b' denied request: no owner`:                  {Policy: "p", Binding: "b", Message: "no owner"},
		`configmaps "c" is forbidden: ValidatingAdmissionPolicy 'at-installed-p' with binding 'at-installed-b' denied request: no owner`:  {Policy: "p", Binding: "b", Message: "no owner"},
		`configmaps is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: x`:                            {Policy: "p", Message: "failed to configure policy: x", Failed: true},
		`deployments.apps "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: 'q' with binding 'c' is other`: {Policy: "p", Binding: "b", Message: "'q' with binding 'c' is other"},
		`policy 'at-1-m' with binding 'at-1-b' denied request: failed to configure binding: x`:                                            {Policy: "m", Binding: "b", Message: "failed to configure binding: x", Failed: true},
		`policy "m" denied request: failed to configure policy: x`:                                                                        {Policy: "m", Message: "failed to configure policy: x", Failed: true},
		// Those who only repeat such a string did not refuse.
		`admission webhook "w.example.com" denied the request: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x`: {Webhook: "w.example.com", Message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x"},
		`quota: admission webhook "w.example.com" denied the request: x`:                                                         {},
		// An error decides nothing. A MutatingAdmissionPolicy has no validations.
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.x == 1' resulted in error: no such key: x`:                                 {Policy: "p", Binding: "b", Message: "expression 'object.x == 1' resulted in error: no such key: x", Failed: true},
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: [expression 'a' resulted in error: x, expression 'b' resulted in error: x]`:                   {Policy: "p", Binding: "b", Message: "[expression 'a' resulted in error: x, expression 'b' resulted in error: x]", Failed: true},
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: validation failed due to running out of cost budget, no further validation rules will be run`: {Policy: "p", Binding: "b", Message: "validation failed due to running out of cost budget, no further validation rules will be run", Failed: true},
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed messageExpression: out of budget`:                                                      {Policy: "p", Binding: "b", Message: "failed messageExpression: out of budget", Failed: true},
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: compilation error: compilation failed: ERROR`:                                                 {Policy: "p", Binding: "b", Message: "compilation error: compilation failed: ERROR", Failed: true},
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.x == 1`:                                                             {Policy: "p", Binding: "b", Message: "failed expression: object.x == 1"},
		`pods "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the expression 'a' resulted in error: x`:                                                      {Policy: "p", Binding: "b", Message: "the expression 'a' resulted in error: x"},
		`policy 'm' with binding 'b' denied request: JSON Patch: doc is missing path`:                                                                                                        {Policy: "m", Binding: "b", Message: "JSON Patch: doc is missing path", Failed: true},
		`Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: refused`:                                                                                   {Webhook: "w.example.com", Message: "failed to call webhook: refused", Failed: true},
		`Internal error occurred: admission webhook "w.example.com" attempted to modify the object, which is not supported for this operation`:                                               {Webhook: "w.example.com", Message: "attempted to modify the object, which is not supported for this operation", Failed: true},
		`admission webhook "w.example.com" does not support dry run`:                                                                                                                         {Webhook: "w.example.com", Message: "does not support dry run", Failed: true},
		`pods "c" is forbidden: expression 'object.x == 1' resulted in error: no such key: x`:                                                                                                {Message: "expression 'object.x == 1' resulted in error: no such key: x", Failed: true},
		`configmaps "c" is forbidden: User "ann" cannot create resource "configmaps"`:                                                                                                        {},
		``: {},
	} {
		t.Run(message, func(t *testing.T) {
			if got := expect.RefusedBy(metav1.Status{Message: message}, "at-1"); got != want {
				t.Errorf("%s:\ngot  %+v\nwant %+v", message, got, want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	policy := expect.Refuser{Policy: "p", Binding: "b", Message: "no owner"}
	failed := expect.Refuser{Policy: "p", Binding: "b", Message: "no such key: x", Failed: true}
	call := expect.Refuser{Webhook: "w", Message: "failed to call webhook", Failed: true}
	for name, test := range map[string]struct {
		expect scenario.RefusedBy
		got    expect.Refuser
		wrong  []string
	}{
		"an error":             {scenario.RefusedBy{Policy: []string{"p"}}, failed, []string{"refusedBy"}},
		"an error, validation": {scenario.RefusedBy{Policy: []string{"p"}, Validation: failed.Message}, failed, []string{"refusedBy"}},
		"error expected":       {scenario.RefusedBy{Policy: []string{"p"}, Binding: "b", Error: "no such key"}, failed, nil},
		"another error":        {scenario.RefusedBy{Policy: []string{"p"}, Error: "no such field"}, failed, []string{"refusedBy.error"}},
		"error of another":     {scenario.RefusedBy{Policy: []string{"q"}, Error: "no such key"}, failed, []string{"refusedBy.policy"}},
		"a denial is no error": {scenario.RefusedBy{Policy: []string{"p"}, Error: "owner"}, policy, []string{"refusedBy.error"}},
		"a failed call":        {scenario.RefusedBy{Webhook: "w"}, call, []string{"refusedBy"}},
		"failed call expected": {scenario.RefusedBy{Webhook: "w", Error: "failed to call"}, call, nil},
		"one of several":       {scenario.RefusedBy{Policy: []string{"q", "p"}}, policy, nil},
		"none of several":      {scenario.RefusedBy{Policy: []string{"q", "r"}}, policy, []string{"refusedBy.policy"}},
		"policy":               {scenario.RefusedBy{Policy: []string{"p"}, Binding: "b", Validation: "no owner"}, policy, nil},
		"webhook":              {scenario.RefusedBy{Webhook: "w"}, expect.Refuser{Webhook: "w", Message: "x"}, nil},
		"another policy":       {scenario.RefusedBy{Policy: []string{"q"}}, policy, []string{"refusedBy.policy"}},
		"another binding":      {scenario.RefusedBy{Policy: []string{"p"}, Binding: "c"}, policy, []string{"refusedBy.binding"}},
		"a part of the text":   {scenario.RefusedBy{Policy: []string{"p"}, Validation: "owner"}, policy, []string{"refusedBy.validation"}},
		"a policy instead":     {scenario.RefusedBy{Webhook: "w"}, policy, []string{"refusedBy.webhook"}},
		"a webhook instead":    {scenario.RefusedBy{Policy: []string{"p"}, Binding: "b"}, expect.Refuser{Webhook: "p"}, []string{"refusedBy.policy", "refusedBy.binding"}},
		"none is named":        {scenario.RefusedBy{Policy: []string{"p"}}, expect.Refuser{}, []string{"refusedBy.policy"}},
		"validation of none":   {scenario.RefusedBy{Policy: []string{"p"}, Validation: "x"}, expect.Refuser{Policy: "p"}, []string{"refusedBy.validation"}},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong []string
			for _, m := range expect.Refused(&scenario.Expectation{RefusedBy: &test.expect}, test.got, metav1.Status{Code: 403}) {
				wrong = append(wrong, m.Path)
			}
			if strings.Join(wrong, " ") != strings.Join(test.wrong, " ") {
				t.Errorf("got mismatches of %v, want %v", wrong, test.wrong)
			}
		})
	}
}

// TestErrorIsNoDenial: an expectation that does not say why a request is refused does not accept an error.
func TestErrorIsNoDenial(t *testing.T) {
	refused := false
	policy := expect.Refuser{Policy: "p", Message: "no such key: x", Failed: true}
	call := expect.Refuser{Webhook: "w", Message: "refused", Failed: true}
	status := metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "no such key: x"}
	for name, test := range map[string]struct {
		expect scenario.Expectation
		got    expect.Refuser
		wrong  string
	}{
		"allowed: false":        {scenario.Expectation{Allowed: &refused}, policy, `allowed: expected a denial (to expect an error: refusedBy: {policy: p, error: PART}), actual error of policy "p": no such key: x`},
		"allowed: false, call":  {scenario.Expectation{Allowed: &refused}, call, `allowed: expected a denial (to expect an error: refusedBy: {webhook: w, error: PART}), actual failed call of webhook "w": refused`},
		"case of a PolicyTest":  {scenario.Expectation{Allowed: &refused, PolicyErrors: true}, policy, `allowed: expected a denial (to expect an error: denied: {error: PART}), actual error of policy "p": no such key: x`},
		"a denial":              {scenario.Expectation{Allowed: &refused}, expect.Refuser{Policy: "p"}, ""},
		"code":                  {scenario.Expectation{Code: []int{422}}, policy, `allowed: expected a denial (to expect an error: refusedBy: {policy: p, error: PART}), actual error of policy "p": no such key: x`},
		"reason":                {scenario.Expectation{Reason: []string{"Invalid"}}, expect.Refuser{Message: "x", Failed: true}, `allowed: expected a denial (to expect an error: message: PART), actual error in a match condition of a webhook: x`},
		"a webhook":             {scenario.Expectation{RefusedBy: &scenario.RefusedBy{Webhook: "w"}}, expect.Refuser{Message: "x", Failed: true}, `refusedBy.webhook: expected "w", actual error in a match condition of a webhook: x (the API server does not name the webhook: expect code and message)`},
		"code of a failed call": {scenario.Expectation{Code: []int{422}}, call, ""},
		"another code":          {scenario.Expectation{Code: []int{403}}, policy, ""}, // this already fails
		"message":               {scenario.Expectation{Allowed: &refused, Message: []string{"no such key"}}, policy, ""},
		"details":               {scenario.Expectation{Allowed: &refused, Details: map[string]any{}}, policy, ""},
		"allowed":               {scenario.Expectation{}, policy, ""}, // this already fails
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, m := range expect.Refused(&test.expect, test.got, status) {
				got += m.String()
			}
			if got != test.wrong {
				t.Errorf("got %q, want %q", got, test.wrong)
			}
		})
	}
}

func TestInfrastructureError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":                  {nil, ""},
		"no response":           {fmt.Errorf("send: %w", framework.ErrNoResponse), "the API server did not respond"},
		"during a webhook call": {fmt.Errorf("meanwhile: %w", expect.ErrDuringCall), "the API server did not answer a request that the scenario sent during a webhook call"},
		"both":                  {errors.Join(expect.ErrDuringCall, framework.ErrNoResponse), "the API server did not respond"},
		"overloaded":            {fmt.Errorf("install: %w", apierrors.NewTooManyRequestsError("wait")), "the API server was not ready or overloaded, or its storage failed"},
		"storage":               {errors.New("etcdserver: leader changed"), "the API server was not ready or overloaded, or its storage failed"},
		"bad request":           {apierrors.NewBadRequest("no"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expect.InfrastructureError(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestInfrastructureOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code         int32
		message      string
		codeExpected bool
		want         string
	}{
		"not available":              {503, "shutting down", false, "the API server responded with 503"},
		"a proxy":                    {502, "bad gateway", false, "the API server responded with 502"},
		"not available, as expected": {503, "shutting down", true, ""},
		"storage":                    {500, "rpc error: code = Unavailable", false, "the API server could not reach its storage"},
		"another error":              {500, "no such thing", false, ""},
		"a webhook":                  {503, `admission webhook "a" denied the request`, false, ""},
		"a policy":                   {429, "ValidatingAdmissionPolicy 'a' denied request", false, ""},
		"plugin not ready":           {403, `configmaps "a" is forbidden: not yet ready to handle request`, true, "an admission plugin was not ready"},
		"no roles yet":               {403, `configmaps is forbidden: User "a" cannot create resource "configmaps"`, true, `the authorizer refused the request: User "a" cannot create resource "configmaps"; grant it with a Role and a RoleBinding that the scenario is given, or, if it is the user of the run, with what "admissiontest rbac" prints`},
		"refused":                    {403, "no", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expect.InfrastructureOf(metav1.Status{Code: test.code, Message: test.message}, test.codeExpected); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
