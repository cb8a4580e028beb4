package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

const projectFile = `apiVersion: v1
kind: Service
metadata: {name: a}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: a.example.com, clientConfig: {service: {namespace: my-system, name: hook}}}]
`

// --install hands what admission needs of the files to the target, and names the rest. Its Services can
// have endpoints.
func TestRunInstall(t *testing.T) {
	dir := write(t, map[string]string{
		"scenarios/a.yaml": scenarioFile("mine.a", "MUST", "fine"), "scenarios/other.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "project.yaml": projectFile,
	})
	scenarios, project := filepath.Join(dir, "scenarios"), filepath.Join(dir, "project.yaml")
	target := &fake{}
	got := execute(t.Context(), target, "run", scenarios, "--install", project, "--endpoint", "my-system/hook=https://127.0.0.1:1")
	got.check(t, exitPass)
	if len(target.installed) != 1 || target.installed[0]["kind"] != "ValidatingWebhookConfiguration" {
		t.Errorf("installed %v", target.installed)
	}
	for _, want := range []string{"--install: not installed: 1 Service (v1)\n", "ignored " + filepath.Join(scenarios, "other.yaml") + ": not a Scenario\n"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr is %q; want %q", got.stderr, want)
		}
	}
	target = &fake{installErr: &framework.ManifestError{Err: errors.New("wrong")}}
	got = execute(t.Context(), target, "run", scenarios, "--install", project)
	got.check(t, exitUsage)
	if !strings.Contains(got.stderr, "project.yaml:5:1: wrong") || got.stdout != "" || !target.closed {
		t.Errorf("stdout %q, stderr %q, closed %t", got.stdout, got.stderr, target.closed)
	}
	got = execute(t.Context(), &fake{}, "run", scenarios, "--install", scenarios)
	got.check(t, exitUsage)
	if !strings.Contains(got.stderr, "found nothing that decides about requests") {
		t.Errorf("stderr %q", got.stderr)
	}
	command := (&app{}).runCommand()
	if err := command.ParseFlags([]string{"--install", "a", "--install", "b", "--plugin", "./c,off", "--plugin", "d", "--patience", "1s", "--disposable=false", "--strict"}); err != nil {
		t.Fatal(err)
	}
	args := strings.Join(argsOf(command.Flags(), "target", "patience", "install", "plugin", "disposable"), " ")
	if want := "--patience 1s --install a --install b --plugin ./c,off --plugin d --disposable=false"; args != want {
		t.Errorf("the command that runs it again has %q, want %q", args, want)
	}
}
