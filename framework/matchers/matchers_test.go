package matchers_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	. "github.com/admissiontest/admissiontest/framework/matchers"
)

// marker is a plugin that does what a pod's name says.
type marker struct {
	*admission.Handler
	client kubernetes.Interface
	passes int
}

func (m *marker) SetExternalKubeClientSet(client kubernetes.Interface) { m.client = client }
func (m *marker) ValidateInitialization() error                        { return nil }

func (m *marker) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := a.GetObject().(*corev1.Pod)
	m.passes++
	switch pod.Name {
	case "marked":
		pod.Labels = map[string]string{"mark": "yes"}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "spot"})
		if err := a.AddAnnotation("marker.example.com/mark", "yes"); err != nil {
			return err
		}
	case "refuses-twice":
		if pod.Labels != nil {
			return admission.NewForbidden(a, errors.New("marked already"))
		}
		pod.Labels = map[string]string{"mark": "yes"}
	case "wavers":
		return a.AddAnnotation("marker.example.com/pass", strings.Repeat("i", m.passes))
	case "writes":
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		_, err := m.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		return err
	case "warned":
		warning.AddWarning(ctx, "", "pods are old-fashioned")
	case "forbidden":
		return admission.NewForbidden(a, errors.New("no such team"))
	case "invalid":
		return apierrors.NewInvalid(a.GetKind().GroupKind(), pod.Name, field.ErrorList{field.Required(field.NewPath("spec", "team"), "")})
	}
	return nil
}

func do(t *testing.T, name string) harness.Result {
	t.Helper()
	h := harness.New(t, harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return &marker{Handler: admission.NewHandler(admission.Create)}, nil
	}))
	return h.Do(framework.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

func TestMatchers(t *testing.T) {
	pods := corev1.Resource("pods")
	forbidden := metav1.StatusReasonForbidden
	for _, tc := range []struct {
		name    string
		of      string
		matcher types.GomegaMatcher
		// text is the failure's; empty where it matches.
		text string
	}{
		{"admitted", "plain", BeAdmitted(), ""},
		{"not admitted", "forbidden", BeAdmitted(), `Expected the request to be admitted
    create v1 pods default/forbidden by admissiontest
    actual:   403 Forbidden: pods "forbidden" is forbidden: no such team`},
		{"rejected", "forbidden", BeRejected(forbidden).WithCode(403).Mentioning("no such", "team").For(pods, "forbidden"), ""},
		{"not rejected", "plain", BeRejected(forbidden), `Expected the request to be rejected as Forbidden
but it was admitted
    create v1 pods default/plain by admissiontest
    actual:   admitted (201)`},
		{"rejected otherwise", "forbidden", BeRejected(metav1.StatusReasonNotFound), `Expected the request to be rejected as NotFound
but the reason is Forbidden
    create v1 pods default/forbidden by admissiontest
    actual:   403 Forbidden: pods "forbidden" is forbidden: no such team`},
		{"of another code", "forbidden", BeRejected(forbidden).WithCode(422), `Expected the request to be rejected as Forbidden, with code 422
but the code is 403
    create v1 pods default/forbidden by admissiontest
    actual:   403 Forbidden: pods "forbidden" is forbidden: no such team`},
		{"without the words", "forbidden", BeRejected(forbidden).Mentioning("quota"), `Expected the request to be rejected as Forbidden, mentioning "quota"
but the message does not mention "quota"
    create v1 pods default/forbidden by admissiontest
    actual:   403 Forbidden: pods "forbidden" is forbidden: no such team`},
		{"for another", "forbidden", BeRejected(forbidden).For(pods, "other"), `Expected the request to be rejected as Forbidden, for pods "other"
but its details are about pods "forbidden"
    create v1 pods default/forbidden by admissiontest
    actual:   403 Forbidden: pods "forbidden" is forbidden: no such team`},
		{"with a cause", "invalid", BeRejected(metav1.StatusReasonInvalid).WithCause(metav1.CauseTypeFieldValueRequired, "spec.team"), ""},
		{"without the cause", "invalid", BeRejected(metav1.StatusReasonInvalid).WithCause(metav1.CauseTypeFieldValueInvalid, "spec.team"), `Expected the request to be rejected as Invalid, with cause FieldValueInvalid of field spec.team
but no cause is FieldValueInvalid of field spec.team
    create v1 pods default/invalid by admissiontest
    actual:   422 Invalid: Pod "invalid" is invalid: spec.team: Required value`},
		{"mutated only", "marked", HaveMutatedOnly("metadata.labels", "spec.tolerations"), ""},
		{"mutated more", "marked", HaveMutatedOnly("metadata.labels"), `Expected the request to have mutated only metadata.labels
but it mutated spec.tolerations[0]
    create v1 pods default/marked by admissiontest
    actual:   admitted (201)`},
		{"mutated less", "marked", HaveMutatedOnly("metadata.labels", "spec.tolerations", "spec.nodeName"), `Expected the request to have mutated only metadata.labels, spec.tolerations, spec.nodeName
but it left spec.nodeName
    create v1 pods default/marked by admissiontest
    actual:   admitted (201)`},
		{"mutated nothing", "plain", HaveMutatedNothing(), ""},
		{"mutated something", "marked", HaveMutatedNothing(), `Expected the request to have mutated nothing
but it mutated metadata.labels[mark], spec.tolerations[0]
    create v1 pods default/marked by admissiontest
    actual:   admitted (201)`},
		{"no calls", "plain", HaveMadeNoCalls(), ""},
		{"calls", "writes", HaveMadeNoCalls(), `Expected the request to have made no calls
    create v1 pods default/writes by admissiontest
    actual:   admitted (201)
    calls:    create v1 namespaces new`},
		{"written", "writes", HaveWritten("create", "namespaces"), ""},
		{"written nothing", "plain", HaveWritten("create", "namespaces"), `Expected the request to have written: create namespaces
    create v1 pods default/plain by admissiontest
    actual:   admitted (201)`},
		{"annotation", "marked", HaveAuditAnnotation("marker.example.com/mark", "yes"), ""},
		{"annotation by matcher", "marked", HaveAuditAnnotation("marker.example.com/mark", gomega.HavePrefix("y")), ""},
		{"another annotation", "marked", HaveAuditAnnotation("marker.example.com/mark", "no"), `Expected the request to have the audit annotation marker.example.com/mark: "no"
got "yes"
    create v1 pods default/marked by admissiontest
    actual:   admitted (201)`},
		{"no annotation", "plain", HaveAuditAnnotation("marker.example.com/mark", "yes"), `Expected the request to have the audit annotation marker.example.com/mark: "yes"
annotations: none
    create v1 pods default/plain by admissiontest
    actual:   admitted (201)`},
		{"warning", "warned", HaveWarning("pods are old-fashioned"), ""},
		{"warning by matcher", "warned", HaveWarning(gomega.ContainSubstring("old")), ""},
		{"another warning", "warned", HaveWarning("beware"), `Expected the request to have the warning "beware"
    create v1 pods default/warned by admissiontest
    actual:   admitted (201)
    warning:  pods are old-fashioned`},
		{"idempotent", "plain", BeIdempotent(), ""},
		{"appends", "marked", BeIdempotent(), `Expected the request to be idempotent
but Admit, run again, mutates spec.tolerations[1]
    create v1 pods default/marked by admissiontest
    actual:   admitted (201)`},
		{"rejects its own", "refuses-twice", BeIdempotent(), `Expected the request to be idempotent
but Admit, run again, rejects what it made: pods "refuses-twice" is forbidden: marked already
    create v1 pods default/refuses-twice by admissiontest
    actual:   admitted (201)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := do(t, tc.of)
			ok, err := tc.matcher.Match(got)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if !ok {
				text = tc.matcher.FailureMessage(got)
			}
			if diff := cmp.Diff(tc.text, text); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

// TestWavering: an annotation of another value is found too.
func TestWavering(t *testing.T) {
	got := do(t, "wavers")
	if ok, err := BeIdempotent().Match(got); ok || err != nil {
		t.Errorf("got %v, %v; want a mismatch", ok, err)
	}
}

func TestNegated(t *testing.T) {
	const want = "Expected the request not to be admitted\n    create v1 pods default/plain by admissiontest\n    actual:   admitted (201)"
	if got := BeAdmitted().NegatedFailureMessage(do(t, "plain")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestClusters: what a cluster answered is matched as far as it is known.
func TestClusters(t *testing.T) {
	refused := framework.Result{Status: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no"}}
	if ok, err := BeRejected(metav1.StatusReasonForbidden).WithCode(403).Match(refused); !ok || err != nil {
		t.Errorf("got %v, %v; want a match", ok, err)
	}
	const want = "Expected the request to be admitted\n    actual:   403 Forbidden: no"
	if got := BeAdmitted().FailureMessage(&refused); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMisuse: what a matcher cannot say is an error, neither match nor mismatch.
func TestMisuse(t *testing.T) {
	cluster := framework.Result{Status: metav1.Status{Code: 200}}
	var none *harness.Result
	for name, tc := range map[string]struct {
		matcher types.GomegaMatcher
		actual  any
		want    string
	}{
		"another type":      {BeAdmitted(), "yes", "expected a harness.Result or a framework.Result, got string"},
		"nil":               {BeRejected(""), nil, "expected a harness.Result or a framework.Result, got <nil>"},
		"nil pointer":       {BeAdmitted(), none, "expected a harness.Result or a framework.Result, got *harness.Result"},
		"paths of none":     {HaveMutatedOnly(), do(t, "plain"), "HaveMutatedOnly has no paths: use HaveMutatedNothing"},
		"cluster mutated":   {HaveMutatedOnly("spec"), cluster, "only a harness.Result, of a plugin in this process, has this"},
		"cluster untouched": {HaveMutatedNothing(), cluster, "only a harness.Result, of a plugin in this process, has this"},
		"cluster calls":     {HaveMadeNoCalls(), cluster, "only a harness.Result, of a plugin in this process, has this"},
		"cluster writes":    {HaveWritten("*", "*"), cluster, "only a harness.Result, of a plugin in this process, has this"},
		"cluster again":     {BeIdempotent(), cluster, "only a harness.Result, of a plugin in this process, has this"},
		"no audit":          {HaveAuditAnnotation("a", "b"), cluster, "this Target has no access to audit events"},
		"value of a number": {HaveWarning(3), do(t, "warned"), "expected a string or a gomega matcher, got int"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, err := tc.matcher.Match(tc.actual)
			if ok || err == nil || err.Error() != tc.want {
				t.Errorf("got %v, %v; want the error %q", ok, err, tc.want)
			}
		})
	}
	_, err := BeIdempotent().Match(do(t, "forbidden"))
	if err == nil || !strings.Contains(err.Error(), "there is nothing to admit again") {
		t.Errorf("of a refusal: got %v", err)
	}
}
