package matchers_test

import (
	"context"
	"fmt"
	"io"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	. "github.com/admissiontest/admissiontest/framework/matchers"
)

// teamLabel is a plugin that labels pods.
type teamLabel struct{ *admission.Handler }

func (*teamLabel) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	a.GetObject().(*corev1.Pod).Labels = map[string]string{"team": "blue"}
	return nil
}

func newTeamLabel(io.Reader) (admission.Interface, error) {
	return &teamLabel{admission.NewHandler(admission.Create)}, nil
}

// printer is a framework.T that prints. In a test, use its *testing.T.
type printer struct{ framework.T }

func (printer) Helper()                        {}
func (printer) Cleanup(func())                 {}
func (printer) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (printer) Fatalf(format string, a ...any) { fmt.Printf(format+"\n", a...) }

func Example() {
	t := printer{}
	g := gomega.NewGomega(func(message string, _ ...int) { fmt.Println(message) }) // in a test, gomega.NewWithT(t)

	h := harness.New(t, harness.FromFactory(newTeamLabel))
	result := h.Do(framework.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}))

	g.Expect(result).To(gomega.SatisfyAll(BeAdmitted(), HaveMutatedOnly("metadata.labels"), BeIdempotent()))
	g.Expect(result).To(BeRejected(metav1.StatusReasonForbidden))
	// Output:
	// Expected the request to be rejected as Forbidden
	// but it was admitted
	//     create v1 pods default/p by admissiontest
	//     actual:   admitted (201)
}
