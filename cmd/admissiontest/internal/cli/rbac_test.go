package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rbac prints docs/rbac.yaml. With --aggregated it prints what reads every kind of configuration, for the ServiceAccount that is named.
func TestRBAC(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), nil, "rbac")
	got.check(t, exitPass)
	if got.stdout != string(want) {
		t.Error("rbac does not print docs/rbac.yaml")
	}
	got = execute(t.Context(), nil, "rbac", "--aggregated", "--namespace", "wardle", "--account", "apiserver")
	got.check(t, exitPass)
	for _, kind := range []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"} {
		if !strings.Contains(got.stdout, "- "+kind+"\n") {
			t.Errorf("no right to %s", kind)
		}
	}
	if strings.Contains(got.stdout, "NAMESPACE") || strings.Contains(got.stdout, "ACCOUNT") || strings.Count(got.stdout, "name: apiserver, namespace: wardle") != 3 {
		t.Errorf("want three bindings for the ServiceAccount:\n%s", got.stdout)
	}
	execute(t.Context(), nil, "rbac", "--namespace", "ci").check(t, exitUsage, "--namespace needs --aggregated")
	execute(t.Context(), nil, "rbac", "--aggregated", "--namespace", "Not a name").check(t, exitUsage, `--namespace "Not a name"`)
}
