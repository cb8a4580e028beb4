package harness_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
)

// A subresource that only looks like one of Kubernetes is an error. An aggregated API server may serve another one.
func TestMisspeltSubresource(t *testing.T) {
	h := harness.New(t, plugin(nil, nil))
	_, err := h.Run(t.Context(), framework.Create(pod("p")).WithSubresource("evicton", pod("p")))
	if err == nil || !strings.Contains(err.Error(), `no API server serves pods/evicton; did you mean "eviction"?`) {
		t.Errorf("got error %v; want the right name", err)
	}
	for _, name := range []string{"eviction", "console"} {
		if _, err := h.Run(t.Context(), framework.Create(pod("p")).WithSubresource(name, pod("p"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unchecked is a plugin that gets a client and has no ValidateInitialization.
type unchecked struct{ *scripted }

func (unchecked) SetExternalKubeClientSet(kubernetes.Interface) {}

// logged records logs.
type logged struct {
	framework.T
	logs string
}

func (l *logged) Logf(format string, args ...any) { l.logs += fmt.Sprintf(format, args...) }

// New says why a setter is not called.
func TestNoValidateInitialization(t *testing.T) {
	for want, wants := range map[string]bool{"unchecked: SetExternalKubeClientSet was not called: the plugin has no method ValidateInitialization() error, which is part of WantsExternalKubeClientSet: add it": true, "": false} {
		l := &logged{T: t}
		harness.New(l, harness.FromFactory(func(io.Reader) (admission.Interface, error) {
			p := &scripted{Handler: admission.NewHandler(admission.Create)}
			if wants {
				return unchecked{p}, nil
			}
			return p, nil
		}))
		if !strings.Contains(l.logs, want) || want == "" && l.logs != "" {
			t.Errorf("got log %q, want %q", l.logs, want)
		}
	}
}
