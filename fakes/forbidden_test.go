package fakes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// recordingT is a test that keeps what was reported to it.
type recordingT struct {
	errors   []string
	fatals   []string
	cleanups []func()
}

func (r *recordingT) Helper()             {}
func (r *recordingT) Logf(string, ...any) {}
func (r *recordingT) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recordingT) Fatalf(format string, args ...any) {
	r.fatals = append(r.fatals, fmt.Sprintf(format, args...))
}
func (r *recordingT) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func TestMustNotBeCalled(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	for _, test := range []struct {
		name, want string
		call       func(*fakes.Forbidden) error
	}{
		{"client", "the client (GET /api/v1/namespaces/a) was called by fakes_test.TestMustNotBeCalled.", func(f *fakes.Forbidden) error {
			_, err := f.Client().CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}},
		{"dynamic", "the dynamic client (DELETE /api/v1/namespaces/a) was called by fakes_test.", func(f *fakes.Forbidden) error {
			return f.Dynamic().Resource(namespaces).Delete(t.Context(), "a", metav1.DeleteOptions{})
		}},
		{"mapper", "the RESTMapper (RESTMapping of Namespace) was called by fakes_test.", func(f *fakes.Forbidden) error {
			_, err := f.RESTMapper().RESTMapping(schema.GroupKind{Kind: "Namespace"}, "v1")
			return err
		}},
		{"mapper's kinds", "the RESTMapper (KindsFor of /v1, Resource=namespaces) was called", func(f *fakes.Forbidden) error {
			_, err := f.RESTMapper().KindsFor(namespaces)
			return err
		}},
		{"authorizer", "the authorizer (create pods) was called by fakes_test.", func(f *fakes.Forbidden) error {
			decision, _, err := f.Authorizer().Authorize(t.Context(), authorizer.AttributesRecord{Verb: "create", Resource: "pods", ResourceRequest: true})
			if decision == authorizer.DecisionAllow {
				t.Error("it allowed")
			}
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			recording := &recordingT{}
			forbidden := fakes.MustNotBeCalled(recording)
			err := test.call(forbidden)
			if err == nil || !strings.Contains(err.Error(), "must not be called") {
				t.Errorf("err = %v", err)
			}
			if len(recording.errors) != 1 || !strings.HasPrefix(recording.errors[0], test.want) ||
				!strings.HasSuffix(recording.errors[0], ": this test said with fakes.MustNotBeCalled that it must not be") {
				t.Errorf("got %q\nwant one that begins %q", recording.errors, test.want)
			}
			if len(recording.fatals) > 0 {
				t.Errorf("fatal: %q", recording.fatals)
			}
		})
	}
}

func TestMustNotBeCalledAfterTheTest(t *testing.T) {
	recording := &recordingT{}
	forbidden := fakes.MustNotBeCalled(recording)
	mapper := forbidden.RESTMapper()
	for _, cleanup := range recording.cleanups {
		cleanup()
	}
	if _, err := mapper.ResourceSingularizer("pods"); err == nil {
		t.Error("no error")
	}
	if len(recording.errors) > 0 {
		t.Errorf("reported after the end of the test: %q", recording.errors)
	}
}

func TestClockStands(t *testing.T) {
	clock := fakes.Clock()
	if a, b := clock.Now(), fakes.Clock().Now(); !a.Equal(b) {
		t.Errorf("%v and %v", a, b)
	}
}

func TestAuthorizer(t *testing.T) {
	ask := func(a authorizer.Authorizer, verb, what string) authorizer.Decision {
		t.Helper()
		resource, subresource, _ := strings.Cut(what, "/")
		asked := authorizer.AttributesRecord{User: namedUser("jane"), Verb: verb, Resource: resource, Subresource: subresource, ResourceRequest: true}
		if resource == "" {
			asked = authorizer.AttributesRecord{User: namedUser("jane"), Verb: verb, Path: what}
		}
		decision, _, err := a.Authorize(t.Context(), asked)
		if err != nil {
			t.Errorf("authorize: %v", err)
		}
		return decision
	}
	for _, test := range []struct {
		authorizer *fakes.Authorizer
		verb, what string
		want       authorizer.Decision
	}{
		{fakes.Allow(), "get", "pods", authorizer.DecisionAllow},
		{fakes.Deny(), "get", "pods", authorizer.DecisionNoOpinion},
		{fakes.Deny().Unless("jane", "get", "pods"), "get", "pods", authorizer.DecisionAllow},
		{fakes.Deny().Unless("jane", "get", "pods"), "get", "pods/exec", authorizer.DecisionNoOpinion},
		{fakes.Deny().Unless("jane", "get", "pods"), "list", "pods", authorizer.DecisionNoOpinion},
		{fakes.Deny().Unless("joe", "*", "*"), "get", "pods", authorizer.DecisionNoOpinion},
		{fakes.Allow().Unless("*", "create", "pods/exec"), "create", "pods/exec", authorizer.DecisionNoOpinion},
		{fakes.Allow().Unless("*", "create", "pods/exec"), "create", "pods", authorizer.DecisionAllow},
		{fakes.Allow().Unless("*", "*", "/healthz"), "get", "/healthz", authorizer.DecisionNoOpinion},
	} {
		t.Run(test.verb+" "+test.what, func(t *testing.T) {
			if got := ask(test.authorizer, test.verb, test.what); got != test.want {
				t.Errorf("%s %s: %v, want %v", test.verb, test.what, got, test.want)
			}
		})
	}
}

// The rules of Unless know groups, namespaces and names.
func TestAuthorizerOfObjects(t *testing.T) {
	csr := authorizer.AttributesRecord{APIGroup: "certificates.k8s.io", Resource: "signers", Name: "example.com", ResourceRequest: true}
	secret := authorizer.AttributesRecord{Resource: "secrets", Namespace: "blue", Name: "token", ResourceRequest: true}
	list := authorizer.AttributesRecord{Resource: "secrets", Namespace: "blue", ResourceRequest: true}
	path := authorizer.AttributesRecord{Path: "/healthz"}
	for _, test := range []struct {
		resource string
		objects  []string
		asked    authorizer.AttributesRecord
		allowed  bool
	}{
		{"signers.certificates.k8s.io", nil, csr, true},
		{"signers", nil, csr, true},
		{"signers.example.com", nil, csr, false},
		{"signers.certificates.k8s.io/approve", nil, csr, false},
		{"signers", []string{"example.com"}, csr, true},
		{"signers", []string{"example.org", "example.com"}, csr, true},
		{"signers", []string{"blue/example.com"}, csr, false},
		{"secrets", []string{"blue/token"}, secret, true},
		{"secrets", []string{"*/token"}, secret, true},
		{"secrets", []string{"token"}, secret, true},
		{"secrets", []string{"red/token"}, secret, false},
		{"secrets", []string{"blue/other"}, secret, false},
		{"secrets", []string{"blue/*"}, list, true},
		{"secrets", []string{"blue/token"}, list, false},
		{"*", nil, path, true},
		{"*", []string{"*"}, path, false},
	} {
		t.Run(fmt.Sprintf("%s %s", test.resource, test.objects), func(t *testing.T) {
			decision, reason, err := fakes.Deny().Unless("*", "*", test.resource, test.objects...).Authorize(t.Context(), test.asked)
			if err != nil || (decision == authorizer.DecisionAllow) != test.allowed {
				t.Errorf("Unless %s %q for %+v: %v, %v; want allowed=%t", test.resource, test.objects, test.asked, decision, err, test.allowed)
			}
			if want := `by Unless("*", "*", "` + test.resource + `"`; test.allowed && !strings.Contains(reason, want) {
				t.Errorf("got reason %q, want %q in it", reason, want)
			}
		})
	}
}

func TestAuthorizerRecords(t *testing.T) {
	a, boom := fakes.Allow(), errors.New("boom")
	groups := []string{"devs"}
	asked := authorizer.AttributesRecord{User: userOf("jane", groups), Verb: "use", Resource: "things", Name: "x", ResourceRequest: true}
	ctx := t.Context()
	if _, _, err := a.Authorize(ctx, asked); err != nil {
		t.Fatal(err)
	}
	groups[0] = "changed later"
	// A caller that has only the function, as the methods that later minors add, is recorded too.
	if _, _, err := a.AuthorizerFunc.Authorize(ctx, authorizer.AttributesRecord{Verb: "second"}); err != nil {
		t.Fatal(err)
	}
	got := a.Requests()
	if len(got) != 2 || got[0].Name != "x" || got[0].User.GetGroups()[0] != "devs" || got[1].Verb != "second" || got[1].User != nil {
		t.Errorf("requests: %+v", got)
	}
	if contexts := a.Contexts(); len(contexts) != 2 || contexts[0] != ctx {
		t.Errorf("contexts: %v", contexts)
	}
	if decision, _, err := a.FailWith(boom).Authorize(ctx, asked); !errors.Is(err, boom) || decision != authorizer.DecisionNoOpinion {
		t.Errorf("%v, %v", decision, err)
	}
	if decision, _, err := a.FailWith(nil).Authorize(ctx, asked); err != nil || decision != authorizer.DecisionAllow {
		t.Errorf("%v, %v", decision, err)
	}
	if _, _, err := a.Authorize(ctx, nil); err == nil {
		t.Error("nil attributes: no error")
	}
}
