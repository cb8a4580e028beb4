package fakes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Forbidden makes clients and other values that a plugin must not use in a test. A call of their
// methods fails the test, with the name of the method and the line of the caller, and returns an
// error. It does not panic. After the end of the test, a call only returns the error. Make a
// Forbidden with MustNotBeCalled.
type Forbidden struct {
	t framework.T

	mu    sync.Mutex
	ended bool
}

// errForbidden is the error that the clients and other values of a Forbidden return.
var errForbidden = errors.New("this test said that it must not be called (fakes.MustNotBeCalled)")

// MustNotBeCalled returns a Forbidden. Its clients and other values fail the test when a plugin
// calls them:
//
//	forbidden := fakes.MustNotBeCalled(t)
//	plugin.SetRESTMapper(forbidden.RESTMapper())
func MustNotBeCalled(t framework.T) *Forbidden {
	f := &Forbidden{t: t}
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = true
	})
	return f
}

// called fails the test, if it still runs, and returns the error for the caller.
func (f *Forbidden) called(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.t.Errorf("%s was called%s: this test said with fakes.MustNotBeCalled that it must not be", what, caller())
	}
	return fmt.Errorf("call %s: %w", what, errForbidden)
}

// Client returns a typed client that must not be called.
func (f *Forbidden) Client() kubernetes.Interface {
	f.t.Helper()
	client, err := kubernetes.NewForConfig(f.config("client"))
	if err != nil {
		f.t.Fatalf("make client that must not be called: %v", err)
	}
	return client
}

// Dynamic returns a dynamic client that must not be called.
func (f *Forbidden) Dynamic() dynamic.Interface {
	f.t.Helper()
	client, err := dynamic.NewForConfig(f.config("dynamic client"))
	if err != nil {
		f.t.Fatalf("make dynamic client that must not be called: %v", err)
	}
	return client
}

// RESTConfig returns a client configuration for generated clients of other projects that must not
// be called.
func (f *Forbidden) RESTConfig() *rest.Config { return f.config("client") }

func (f *Forbidden) config(what string) *rest.Config {
	return &rest.Config{Host: "http://forbidden.invalid", Transport: forbiddenTransport{f, what}, QPS: -1}
}

// forbiddenTransport fails the test instead of sending requests.
type forbiddenTransport struct {
	*Forbidden
	what string
}

// RoundTrip implements http.RoundTripper.
func (f forbiddenTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, f.called("the " + f.what + " (" + request.Method + " " + request.URL.RequestURI() + ")")
}

// Authorizer returns an authorizer that must not be called. Its decision is DecisionNoOpinion, with
// an error.
func (f *Forbidden) Authorizer() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		what := "the authorizer"
		if asked != nil {
			what += " (" + strings.TrimSpace(asked.GetVerb()+" "+asked.GetResource()+asked.GetPath()) + ")"
		}
		return authorizer.DecisionNoOpinion, "", f.called(what)
	})
}

// RESTMapper returns a mapper that must not be called. Its methods return an error.
func (f *Forbidden) RESTMapper() meta.RESTMapper {
	return forbiddenMapper{meta.NewDefaultRESTMapper(nil), f}
}

// forbiddenMapper declares the methods that a RESTMapper has today. It embeds an empty mapper for
// methods that later minors may add.
type forbiddenMapper struct {
	*meta.DefaultRESTMapper
	f *Forbidden
}

func (m forbiddenMapper) of(method string, asked any) error {
	return m.f.called(fmt.Sprintf("the RESTMapper (%s of %v)", method, asked))
}

// KindFor implements meta.RESTMapper.
func (m forbiddenMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, m.of("KindFor", resource)
}

// KindsFor implements meta.RESTMapper.
func (m forbiddenMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return nil, m.of("KindsFor", resource)
}

// ResourceFor implements meta.RESTMapper.
func (m forbiddenMapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, m.of("ResourceFor", resource)
}

// ResourcesFor implements meta.RESTMapper.
func (m forbiddenMapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return nil, m.of("ResourcesFor", resource)
}

// RESTMapping implements meta.RESTMapper.
func (m forbiddenMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	return nil, m.of("RESTMapping", kind)
}

// RESTMappings implements meta.RESTMapper.
func (m forbiddenMapper) RESTMappings(kind schema.GroupKind, _ ...string) ([]*meta.RESTMapping, error) {
	return nil, m.of("RESTMappings", kind)
}

// ResourceSingularizer implements meta.RESTMapper.
func (m forbiddenMapper) ResourceSingularizer(resource string) (string, error) {
	return "", m.of("ResourceSingularizer", resource)
}

// caller returns the function and line of the caller: the innermost frame that is not in this
// package and not in the libraries of a client.
func caller() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if frame.Function != "" && !beneath(frame.Function) {
			return fmt.Sprintf(" by %s (%s:%d)", frame.Function[strings.LastIndex(frame.Function, "/")+1:], filepath.Base(frame.File), frame.Line)
		}
	}
	return ""
}

// beneath reports whether a function is one of this package or of the libraries of a client.
func beneath(function string) bool {
	for _, prefix := range []string{
		"github.com/admissiontest/admissiontest/fakes.", "k8s.io/client-go/", "k8s.io/apimachinery/", "k8s.io/apiserver/pkg/authorization/",
		"net/http.", "runtime.", "reflect.",
	} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
