package specs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
	"github.com/admissiontest/admissiontest/suites/contract/specs"
)

// behaviour is the variable that tells a child process which plugin to test.
const behaviour = "SPECS_BEHAVIOUR"

var _ = specs.Describe("a plugin that refuses", subject(os.Getenv(behaviour)), options(os.Getenv(behaviour))...)

// refusing refuses pods that are marked; a broken one marks what it has seen.
type refusing struct {
	*admission.Handler
	broken bool
}

func (p *refusing) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if a.GetOperation() != admission.Create || !ok || pod == nil || a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	if pod.Labels["forbidden"] == "true" {
		return admission.NewForbidden(a, fmt.Errorf("the pod is forbidden"))
	}
	if p.broken {
		pod.Labels = map[string]string{"seen": "true"}
	}
	return nil
}

func subject(behaviour string) contract.Subject {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	forbidden := pod.DeepCopy()
	forbidden.Labels = map[string]string{"forbidden": "true"}
	found := contract.Subject{
		Source: harness.FromRegister("Refusing", func(plugins *admission.Plugins) {
			plugins.Register("Refusing", func(io.Reader) (admission.Interface, error) {
				return &refusing{admission.NewHandler(admission.Create), behaviour == "broken"}, nil
			})
		}),
		Allow:  []framework.Request{framework.Create(pod)},
		Reject: []framework.Request{framework.Create(forbidden)},
	}
	if behaviour == "misused" {
		found.Source = harness.Source{}
	}
	return found
}

func options(behaviour string) []contract.Option {
	if behaviour == "waived" {
		return []contract.Option{contract.Waive("V1", "to see that a waiver that is not needed fails")}
	}
	return nil
}

func TestSpecs(t *testing.T) {
	ginkgo.RunSpecs(t, "specs")
}

// TestFailing: in a process of its own, each of these fails and says why.
func TestFailing(t *testing.T) {
	for name, says := range map[string]string{
		"broken":  `"seen"`,
		"misused": "no plugin of the Subject a plugin that refuses can be had",
		"waived":  "remove the waiver",
	} {
		t.Run(name, func(t *testing.T) {
			output, err := run(t, name)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(output, says) {
				t.Errorf("the specs ended with %v, want a failure that says %q:\n%s", err, says, output)
			}
		})
	}
}

// TestFilter: labels choose properties, so that a broken one can be left out.
func TestFilter(t *testing.T) {
	output, err := run(t, "broken", "-ginkgo.label-filter=P3 || H1")
	if err != nil || !strings.Contains(output, "Ran 2 of ") {
		t.Errorf("of the specs that are fine: %v\n%s", err, output)
	}
}

func run(t *testing.T, what string, arguments ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, append([]string{"-test.run=^TestSpecs$", "-ginkgo.no-color"}, arguments...)...)
	command.Env = append(os.Environ(), behaviour+"="+what)
	output, err := command.CombinedOutput()
	return string(output), err
}
