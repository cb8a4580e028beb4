package ginkgo_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// exampleVariable, if it is set, makes TestExample run the example instead of another process that does.
const exampleVariable = "CONFORMANCE_EXAMPLE"

// TestExample runs the test that Example shows, in another process, because Ginkgo allows one suite
// in each.
func TestExample(t *testing.T) {
	if os.Getenv(exampleVariable) != "" {
		testAdmission(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-test.run=^TestExample$", "--ginkgo.no-color", "--ginkgo.v")
	command.Env = append(os.Environ(), exampleVariable+"=1")
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "reinvocation.if-needed") || !strings.Contains(string(output), "| 0 Failed |") {
		t.Errorf("got %v, want specs of reinvocation.if-needed, none of them failed:\n%s", err, output)
	}
}
