package harness_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

const failing = "ADMISSIONTEST_FAILING_TESTS"

// TestLines runs tests that fail in another process, and checks the line in each message: it must
// be the line of the caller, which is the line after its mark.
func TestLines(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailing$", "-test.v")
	command.Env = append(os.Environ(), failing+"=1")
	output, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("no test failed:\n%s", output)
	}
	marks := regexp.MustCompile(`(\w+) at line (\d+)`).FindAllStringSubmatch(string(output), -1)
	if len(marks) != 7 {
		t.Fatalf("%d marks, want 7:\n%s", len(marks), output)
	}
	for _, mark := range marks {
		line, err := strconv.Atoi(mark[2])
		if err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(string(output), mark[0])
		if want := "line_test.go:" + strconv.Itoa(line+1) + ": "; !strings.HasPrefix(strings.TrimSpace(said), want) {
			t.Errorf("%s does not fail at %s\n%s", mark[1], want, output)
		}
	}
}

func mark(t *testing.T) {
	_, _, line, _ := runtime.Caller(1)
	name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	_, _ = os.Stderr.WriteString(name + " at line " + strconv.Itoa(line) + "\n")
}

// TestFailing has tests that fail, for TestLines.
func TestFailing(t *testing.T) {
	if os.Getenv(failing) == "" {
		t.Skip("run by TestLines")
	}
	refuse := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		return admission.NewForbidden(a, errors.New("no"))
	}
	t.Run("New", func(t *testing.T) {
		mark(t)
		harness.New(t, harness.FromFactory(nil))
	})
	t.Run("Do", func(t *testing.T) {
		h := harness.New(t, plugin(nil, nil))
		mark(t)
		h.Do(framework.Update(nil, pod("p")))
	})
	t.Run("Admit", func(t *testing.T) {
		h := harness.New(t, plugin(nil, nil))
		mark(t)
		h.Admit(framework.Create(nil))
	})
	t.Run("Validate", func(t *testing.T) {
		h := harness.New(t, plugin(nil, nil))
		mark(t)
		h.Validate(framework.Create(nil))
	})
	t.Run("MustAllow", func(t *testing.T) {
		h := harness.New(t, plugin(refuse, nil))
		mark(t)
		h.Do(framework.Create(pod("p"))).MustAllow(t)
	})
	t.Run("MustReject", func(t *testing.T) {
		h := harness.New(t, plugin(nil, nil))
		mark(t)
		h.Do(framework.Create(pod("p"))).MustReject(t, "Forbidden")
	})
	t.Run("Mutated", func(t *testing.T) {
		h := harness.New(t, plugin(nil, nil))
		mark(t)
		harness.Mutated[*corev1.Node](t, h.Do(framework.Create(pod("p"))))
	})
}
