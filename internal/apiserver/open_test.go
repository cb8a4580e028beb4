package apiserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// What an Open Sandbox installs can refuse namespaces, so that of the fences exists before. Only
// on an API server that ends with the run there is such a Sandbox.
func TestOpenSandbox(t *testing.T) {
	for run, disposable := range map[string]bool{"opendisposable": true, "openshared": false} {
		t.Run(run, func(t *testing.T) {
			run += fmt.Sprint(rand.Uint32()) //nolint:gosec // no secret: a disposable server keeps the namespaces of the last time
			on, err := New(t.Context(), Options{Config: testserver.Config(t), Run: run, Disposable: disposable})
			if err != nil {
				t.Fatal(err)
			}
			_, err = on.NewSandbox(t.Context(), SandboxOptions{ID: "at-" + run + "-00001", Open: true})
			if shared := errors.Is(err, framework.ErrForeign); shared == disposable || disposable && err != nil {
				t.Errorf("disposable %t: got %v", disposable, err)
			}
			client, err := kubernetes.NewForConfig(testserver.Config(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), "at-"+run+"-fence", metav1.GetOptions{}); (err == nil) != disposable {
				t.Errorf("disposable %t: namespace of the fences: %v", disposable, err)
			}
			if err := on.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What an API server does not serve cannot be effective: as MutatingAdmissionPolicies of a scenario on an API server before 1.36.
func TestNotServedIsNotAwaited(t *testing.T) {
	const group = "admissionregistration.k8s.io/"
	server, err := envtest.Start(t.Context(), envtest.Options{Profile: envtest.Profile{Flags: map[string]string{
		"runtime-config":            group + "v1/mutatingadmissionpolicies=false," + group + "v1/mutatingadmissionpolicybindings=false",
		"disable-admission-plugins": "MutatingAdmissionPolicy",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	on, err := New(t.Context(), Options{Config: server.Config, Run: "notserved", Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		if err := on.WaitUntilEffective(t.Context(), []map[string]any{{"apiVersion": group + "v1", "kind": kind}}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := on.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
