package apiserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/admissiontest/admissiontest/framework"
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
