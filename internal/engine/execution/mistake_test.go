package execution

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

const withMistakes = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: my.mistake}
spec:
  level: MUST
  requirement: A requirement.
  source: [https://example.com]
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: a}
      spec:
        failurePolcy: Fail
        validations:
          - expression: object.spec.replica > > 1
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dta: {}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dta: {}}
      options: {fieldValidation: Warn}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dta: {}}
      then: {warnings: ['unknown field "dta"']}
    - parallel:
        - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dta: {}}
    - patch: {apiVersion: v1, kind: ConfigMap, name: b, merge: {dta: {}}}
`

// refusingSandbox refuses each manifest and warns of a field in each request.
type refusingSandbox struct {
	fakeSandbox
	status metav1.Status
}

func (s *refusingSandbox) Install(context.Context, map[string]any, map[string]hook.Script) error {
	return &apierrors.StatusError{ErrStatus: s.status}
}

func (s *refusingSandbox) Do(ctx context.Context, r framework.Request) (framework.Result, error) {
	result, err := s.fakeSandbox.Do(ctx, r)
	result.Warnings = []string{`unknown field "dta"`}
	return result, err
}

func mistaken(t *testing.T, status metav1.Status) *Case {
	t.Helper()
	loaded, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(withMistakes)}}})
	if err != nil {
		t.Fatal(err)
	}
	c := caseOn(&refusingSandbox{status: status})
	c.Scenario, c.Given = loaded[0], loaded[0].Spec.Given
	return c
}

func TestMistakesInGiven(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		status metav1.Status
		want   []string
	}{
		"unknown field": {
			metav1.Status{Code: http.StatusBadRequest, Message: `ValidatingAdmissionPolicy in version "v1" cannot be handled as a ValidatingAdmissionPolicy: strict decoding error: unknown field "spec.failurePolcy", duplicate field "spec.validations"`},
			[]string{`a.yaml:13:9: `, `unknown field "spec.failurePolcy"`, `did you mean "failurePolicy"?`, "\na.yaml:14:9: ", `duplicate field "spec.validations"`},
		},
		"expression": {
			metav1.Status{Code: http.StatusUnprocessableEntity, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Field: "spec.validations[0].expression", Message: "compilation failed: ERROR: <input>:1:23\n | object\n | ..^"},
			}}},
			[]string{`a.yaml:15:13: given[0] ValidatingAdmissionPolicy a: spec.validations[0].expression: compilation failed`, "\n | ..^"},
		},
		"type": {
			metav1.Status{Code: http.StatusBadRequest, Message: "json: cannot unmarshal"},
			[]string{`a.yaml:9:7: `, "json: cannot unmarshal"},
		},
		"a webhook refused it": {metav1.Status{Code: http.StatusBadRequest, Message: `admission webhook "other" denied the request`}, nil},
		"no rights":            {metav1.Status{Code: http.StatusForbidden, Message: "forbidden"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Setup{Case: mistaken(t, one.status)}).Arrange(t.Context())
			if err == nil || expect.IsMistake(err) != (one.want != nil) {
				t.Errorf("got %v", err)
				return
			}
			for _, want := range one.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q; want %q in it", err, want)
				}
			}
		})
	}
}

// What an API server refuses in a namespace of the scenario has its position too.
func TestMistakeInNamespaces(t *testing.T) {
	t.Parallel()
	const file = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: my.mistake}
spec:
  level: MUST
  requirement: A requirement.
  namespaces:
    - {name: other, labels: {team: not a label}}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: $(namespace.other)}}
`
	loaded, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(file)}}})
	if err != nil {
		t.Fatal(err)
	}
	c := caseOn(&refusingSandbox{status: metav1.Status{Code: http.StatusUnprocessableEntity, Message: "metadata.labels: Invalid value"}})
	c.Scenario, c.namespaces = loaded[0], loaded[0].Spec.Namespaces
	err = (&Setup{Case: c}).Arrange(t.Context())
	if want := "a.yaml:8:7: namespaces[0] Namespace -other: the API server refuses it: metadata.labels: Invalid value"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q in it", err, want)
	}
}

// A misspelt field in a step is an error, unless the step is about such fields.
func TestMistakesInSteps(t *testing.T) {
	t.Parallel()
	c := mistaken(t, metav1.Status{})
	for i, want := range []string{"a.yaml:17:70: ", "", "", "a.yaml:23:74: ", "a.yaml:24:65: "} {
		step := c.Scenario.Spec.When[i]
		path := "when[" + string(rune('0'+i)) + "]"
		if step.Parallel != nil { // a Recording needs a server
			step, path = step.Parallel[0], path+".parallel[0]"
		}
		f := c.at(path).step(t.Context(), step)
		var err error
		if f != nil {
			err = f.Err
		}
		if (want != "") != expect.IsMistake(err) || want != "" && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("step %d: got %v; want %q", i+1, err, want)
		}
	}
}

// An error that is no mistake stays as it is.
func TestNoMistake(t *testing.T) {
	t.Parallel()
	err := errors.New("other")
	if got := new(Case).asMistake(err, "given[0]", nil); got != err { //nolint:errorlint // the same error
		t.Errorf("got %v", got)
	}
}

const withGivenFile = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: my.given}
spec:
  level: MUST
  requirement: A requirement.
  givenFiles: [object.yaml]
  given: [{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}]
  when: [{get: {apiVersion: v1, kind: ConfigMap, name: a}}]
`

// The error of an API server about a manifest of another file has no value of it, unless the manifest
// decides about requests.
func TestGivenFileStaysPrivate(t *testing.T) {
	t.Parallel()
	refusals := []metav1.Status{
		{Code: http.StatusUnprocessableEntity, Message: "hunter2", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Field: "data.key", Message: `Invalid value: "hunter2": must be hunter2`}, {Field: "data", Message: `hunter2 must be less`},
		}}},
		{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: `Secret in version "v1" cannot be handled: hunter2`},
		{Code: http.StatusUnprocessableEntity, Message: "hunter2"},
	}
	for kind, shows := range map[string]bool{"apiVersion: v1\nkind: Secret": false, "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy": true} {
		t.Run(kind, func(t *testing.T) {
			loaded, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(withGivenFile)}, "object.yaml": {Data: []byte(kind + "\nmetadata: {name: a}\ndata: {key: hunter2}\n")}}}, "a.yaml")
			if err != nil {
				t.Fatal(err)
			}
			for i, status := range refusals {
				for index := range 2 {
					c := caseOn(&refusingSandbox{status: status})
					c.Scenario = loaded[0]
					err := c.asMistake(&apierrors.StatusError{ErrStatus: status}, "given["+string(rune('0'+index))+"]", loaded[0].Spec.Given[index])
					if want := shows || index == 1; !expect.IsMistake(err) || strings.Contains(err.Error(), "hunter2") != want || strings.Contains(errors.Unwrap(err).Error(), "hunter2") != want {
						t.Errorf("%s, given[%d], refusal %d: got %v; want its values: %t", kind, index, i, err, want)
					}
				}
			}
		})
	}
}
