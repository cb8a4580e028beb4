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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
	"github.com/admissiontest/admissiontest/suites/contract/specs"
)

// behaviour is the environment variable that selects the plugin of a child process.
const behaviour = "SPECS_BEHAVIOUR"

var _ = specs.Describe("a plugin that refuses", subject(os.Getenv(behaviour)), options(os.Getenv(behaviour))...)

// refusing refuses pods with a label. A broken one adds a label in Validate.
type refusing struct {
	*admission.Handler
	broken bool
}

func (p *refusing) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Create || a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return apierrors.NewBadRequest("the object is no pod")
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
		return []contract.Option{contract.Waive("V1", "a test of a waiver that is not needed")}
	}
	return nil
}

// TestSpecs runs the specs in child processes only: Ginkgo runs them once in a process, and
// the Example has to be first.
func TestSpecs(t *testing.T) {
	if _, child := os.LookupEnv(behaviour); child {
		ginkgo.RunSpecs(t, "specs")
		return
	}
	if output, err := run(t, "sound"); err != nil {
		t.Errorf("specs of a correct plugin: %v\n%s", err, output)
	}
}

// TestFailing: each of these fails in a child process and says why.
func TestFailing(t *testing.T) {
	for name, says := range map[string]string{
		"broken":  `"seen"`,
		"misused": "build the plugin of Subject a plugin that refuses: ",
		"waived":  "remove the waiver",
	} {
		t.Run(name, func(t *testing.T) {
			output, err := run(t, name)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(output, says) {
				t.Errorf("specs ended with %v, want a failure with %q:\n%s", err, says, output)
			}
		})
	}
}

// TestFilter: labels select rules, so that one that fails can be left out.
func TestFilter(t *testing.T) {
	output, err := run(t, "broken", "-ginkgo.label-filter=P3 || handles-is-consistent")
	if err != nil || !strings.Contains(output, "Ran 2 of ") {
		t.Errorf("specs of two rules that hold: %v\n%s", err, output)
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
