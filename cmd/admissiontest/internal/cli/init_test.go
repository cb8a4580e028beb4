package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
)

// The PolicyTest that init writes has the cases that can be found, says what is missing, and passes. The policies are about
// a custom resource, a param, an object that is changed, and a user; one object cannot be found.
func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "init"))); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "policytest.yaml")
	init := []string{"init", dir, "--to", written}
	execute(t.Context(), nil, init...).check(t, exit.Pass)
	data, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		"update-widget-allowed", "message: hot parts must be green", "message: the owner cannot change", "tier: prod",
		"create-deployment-allowed", "message: at most 7",
		"create-serviceaccount-mutated-", "team: none", "create-serviceaccount-allowed",
		"delete-secret-allowed", "message: only keepers",
		"# - DELETE of Secret: no object found that only validations[1] of ValidatingAdmissionPolicy secrets denies",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "no object found"); n != 1 {
		t.Errorf("%d cases are missing, want 1:\n%s", n, text)
	}
	got := execute(t.Context(), nil, "run", written)
	got.check(t, exit.Pass)
	if want := fmt.Sprintf("%d pass", strings.Count(text, "\n- name: ")); !strings.Contains(got.stdout, want) {
		t.Errorf("got %s, want %s of:\n%s", got.stdout, want, text)
	}
	again := execute(t.Context(), nil, init...)
	again.check(t, exit.Usage)
	if now, err := os.ReadFile(written); err != nil || string(now) != text || !strings.Contains(again.stderr, "exists") {
		t.Errorf("the file is not as it was: %v\n%s", err, again.stderr)
	}
}

func TestInitMisuse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"no policy":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "no ValidatingAdmissionPolicy"},
		"no YAML":    {"a: [", "policy.yaml:1"},
		"bad policy": {"\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a},\nspec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]},\nvalidations: [{expression: 'object.'}]}}", "policy.yaml:4:16"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "policy.yaml")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := execute(t.Context(), nil, "init", file, "--to", filepath.Join(dir, "test.yaml"))
			got.check(t, exit.Usage)
			if !strings.Contains(got.stderr, test.want) {
				t.Errorf("got %s, want %q", got.stderr, test.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "test.yaml")); err == nil {
				t.Error("there is a file")
			}
		})
	}
	execute(t.Context(), nil, "init").check(t, exit.Usage)
	execute(t.Context(), nil, "init", filepath.Join(t.TempDir(), "none.yaml")).check(t, exit.Usage)
}
