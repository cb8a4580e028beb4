package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The values that no output shows. The API server returns them.
const (
	password = "aHVudGVyMg==" // hunter2
	pin      = "77"
	extra    = "42"
	bearer   = "token-of-the-kubeconfig"
	inPath   = "at-secret-abcdefghijklmnopqrstuvwxyz"
	jwt      = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
)

// talkative is an API server that returns secrets, and repeats tokens in what it says.
type talkative struct{ fake }

func (f *talkative) Start(context.Context, target.StartOptions) (target.Target, error) {
	return f, nil
}

func (f *talkative) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	return f, nil
}

func (*talkative) Install(context.Context, map[string]any, map[string]hook.Script) error { return nil }

func (*talkative) Do(_ context.Context, request framework.Request) (framework.Result, error) {
	if request.Name == "broken" {
		return framework.Result{}, errors.New("Post https://127.0.0.1:1/" + inPath + "/o/c/w: Authorization: Bearer " + bearer + ", " + jwt)
	}
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"},
		"data": map[string]any{"password": password, "pin": pin},
	}
	if request.Name == "token" {
		secret = map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": map[string]any{"token": jwt}}
	}
	var got framework.Result
	got.Status.Code, got.Status.Message = 201, "invalid value "+jwt+", from Bearer "+bearer+` in Post "https://127.0.0.1:1/`+inPath+`/o/c/w?timeout=10s": EOF`
	got.Warnings = []string{jwt + " is weak"}
	got.Object = &unstructured.Unstructured{Object: secret}
	got.Trace = framework.Trace{{
		Webhook: "w", Phase: framework.Mutating, Observed: true, Started: time.Now(), Finished: time.Now(), Answer: "denied: " + jwt + ", /" + inPath + "/o, Bearer " + bearer,
		Header: http.Header{"Authorization": {"Bearer " + bearer}},
		Review: map[string]any{"request": map[string]any{
			"object": secret, "userInfo": map[string]any{"username": "jane", "extra": map[string]any{"example.com/x": []any{extra}}},
		}},
	}}
	return got, nil
}

const secretScenario = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.%[1]s}
spec:
  level: MUST
  requirement: The requirement.
  source: ["https://example.com"]
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: c}
      webhooks: [{name: w}]
  hooks: {w: {allowed: true}}
  when:
    - id: first
      create: {apiVersion: v1, kind: Secret, metadata: {name: a}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s}, data: {a: $(steps.first.object.data.password)}}
      then:
        message: something else
        warnings: []
        object: {data: {password: other, pin: "78"}, status: {token: x}}
        calls:
          - webhook: w
            header: {authorization: none}
            request: {object: {data: {pin: "79"}}, userInfo: {extra: {example.com/x: ["43"]}}}
`

func (f *talkative) run(t *testing.T) (outputs map[string]string) {
	t.Helper()
	dir := write(t, map[string]string{
		"a.yaml": fmt.Sprintf(secretScenario, "a"), "broken.yaml": fmt.Sprintf(secretScenario, "broken"), "token.yaml": fmt.Sprintf(secretScenario, "token"),
	})
	t.Chdir(dir)
	out := t.TempDir()
	got := execute(t.Context(), f, "run", "./", "-v", "--report", out, "--parallel", "1")
	got.check(t, exitFail)
	asJSON := execute(t.Context(), f, "run", "./", "-o", "json")
	asJSON.check(t, exitFail)
	outputs = map[string]string{"console": got.stdout, "progress": got.stderr, "-o json": asJSON.stdout}
	for _, name := range []string{report.JSONFile, report.JUnitFile, report.HTMLFile} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		outputs[name] = string(data)
	}
	return outputs
}

// No output shows the data of Secrets, tokens, and extra fields of users.
func TestRunRedacts(t *testing.T) {
	dir := packageDir(t)
	outputs := (&talkative{}).run(t)
	for name, text := range outputs {
		for _, secret := range []string{password, "hunter2", `"` + pin + `"`, `"` + extra + `"`, bearer, jwt, "eyJ", "at-secret-"} {
			if strings.Contains(text, secret) || strings.Contains(text, strings.ReplaceAll(secret, `"`, `\"`)) {
				t.Errorf("%s shows %s:\n%s", name, secret, text)
			}
		}
	}
	varying := regexp.MustCompile(`\(?[0-9.]+ s[,)]|[+-][0-9.]+ms|after [0-9.]+[µnm]?s|in [0-9.]+ s|total [0-9.]+ s`)
	golden.Compare(t, filepath.Join(dir, "testdata", "redacted.golden"), varying.ReplaceAllString(outputs["console"]+"\n"+outputs["progress"], "TIME"))
}

// The reason why a run ended early is redacted too.
func TestRunRedactsErrors(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": scenarioFile("mine.a", "MUST", "fine")})
	got := execute(t.Context(), &fake{startErr: errors.New("no server: Authorization: Bearer " + bearer)}, "run", dir, "-o", "json")
	got.check(t, exitInfrastructure, "no server: Authorization: Bearer (redacted)")
	if text := got.stdout + got.stderr; strings.Contains(text, bearer) || !strings.Contains(got.stdout, `"incomplete": "no server: `) {
		t.Errorf("got\n%s", text)
	}
}
