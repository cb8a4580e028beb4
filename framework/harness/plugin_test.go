package harness_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// call is what a phase of a plugin is.
type call func(context.Context, admission.Attributes, admission.ObjectInterfaces) error

// scripted is a plugin that does what a test says.
type scripted struct {
	*admission.Handler
	admit, validate call
}

func (p *scripted) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.admit == nil {
		return nil
	}
	return p.admit(ctx, a, o)
}

func (p *scripted) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.validate == nil {
		return nil
	}
	return p.validate(ctx, a, o)
}

// plugin is a Source of a plugin that handles everything.
func plugin(admit, validate call) harness.Source {
	return harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return &scripted{admission.NewHandler(admission.Create, admission.Update, admission.Delete, admission.Connect), admit, validate}, nil
	})
}

func pod(name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "test"}}
	for _, f := range edit {
		f(p)
	}
	return p
}

// recorder is a framework.T that only records messages.
type recorder struct {
	errors   []string
	fatal    string
	cleanups []func()
}

func (*recorder) Helper()             {}
func (*recorder) Logf(string, ...any) {}
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, a ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, a...))
}
func (r *recorder) Fatalf(format string, a ...any) {
	r.fatal = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

// record runs a test that may fail.
func record(test func(*recorder)) *recorder {
	r, done := &recorder{}, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for at := len(r.cleanups) - 1; at >= 0; at-- {
				r.cleanups[at]()
			}
		}()
		test(r)
	}()
	<-done
	return r
}

// mustHave ends the test unless the text has all parts.
func mustHave(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Fatalf("does not have %q:\n%s", part, text)
		}
	}
}
