package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
)

// admissiontest rbac --transport service prints docs/rbac.yaml.
func TestRBACOfTheCatalogue(t *testing.T) {
	got := onCatalogue(t.Context(), "rbac", "--transport", "service")
	got.check(t, exit.Pass)
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got.stdout != string(want) {
		t.Error("rbac --transport service does not print docs/rbac.yaml; run go test ./internal/rbac -update, and review")
	}
}

func TestRBACOfASelection(t *testing.T) {
	dir := write(t, map[string]string{"mine/one.yaml": strings.Replace(scenarioFile("mine.one", "MUST", "fine"), "ConfigMap", "Gadget", 1)})
	for name, test := range map[string]struct {
		args          []string
		says, without []string
		notes         string
	}{
		"areas": {
			args: []string{"--areas", "order,vap"}, says: []string{"name: admissiontest-vap}"},
			without: []string{"name: admissiontest-wire}", "transport-service", "secrets", "impersonate"},
		},
		"scenario of an area": {args: []string{"wire", "vap", "--areas", "vap"}, says: []string{"name: admissiontest-vap}"}, without: []string{"name: admissiontest-wire}"}},
		"account":             {args: []string{"vap", "--account", "a.b", "--namespace", "ci"}, says: []string{"metadata: {name: a.b, namespace: ci}", "name: a.b-vap}", "kubectl create token a.b --namespace ci"}, without: []string{"admissiontest-"}},
		"file":                {args: []string{filepath.Join(dir, "mine")}, says: []string{"name: admissiontest-engine}"}, notes: "rights for v1 Gadget are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got := onCatalogue(t.Context(), append([]string{"rbac"}, test.args...)...)
			got.check(t, exit.Pass)
			for _, text := range test.says {
				if !strings.Contains(got.stdout, text) {
					t.Errorf("%q is not in\n%s", text, got.stdout)
				}
			}
			for _, text := range test.without {
				if strings.Contains(got.stdout, text) {
					t.Errorf("%q is in\n%s", text, got.stdout)
				}
			}
			if !strings.Contains(got.stderr, test.notes) || test.notes == "" && got.stderr != "" {
				t.Errorf("notes %q, want %q", got.stderr, test.notes)
			}
		})
	}
}
