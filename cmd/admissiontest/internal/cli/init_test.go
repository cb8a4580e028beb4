package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The PolicyTest that init writes has a case for each operation and kind of the rules, with what each got, says what is missing, and
// passes. The policies are about a custom resource, a param, an object that is changed, a user, and a namespace with a label.
func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "init"))); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "policytest.yaml")
	init := []string{"init", dir, "--to", written}
	execute(t.Context(), nil, init...).check(t, exitPass)
	data, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		"create-deployment", "delete-secret", "team: none", "namespace: kept", "tier: prod", "operation: DELETE", "denied: keep it",
		"# - widgets: UPDATE of Widget: no object found that the API server accepts: ", "# - replicas: a request that validations[0] denies: object.spec.replicas <=",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "# - kept: ") {
		t.Errorf("the denial is not seen:\n%s", text)
	}
	got := execute(t.Context(), nil, "run", written)
	got.check(t, exitPass)
	if want := fmt.Sprintf("%d pass", strings.Count(text, "\n- name: ")); !strings.Contains(got.stdout, want) {
		t.Errorf("got %s, want %s of:\n%s", got.stdout, want, text)
	}
	again := execute(t.Context(), nil, init...)
	again.check(t, exitUsage)
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
			got.check(t, exitUsage)
			if !strings.Contains(got.stderr, test.want) {
				t.Errorf("got %s, want %q", got.stderr, test.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "test.yaml")); err == nil {
				t.Error("there is a file")
			}
		})
	}
	execute(t.Context(), nil, "init").check(t, exitUsage)
	execute(t.Context(), nil, "init", filepath.Join(t.TempDir(), "none.yaml")).check(t, exitUsage)
}

// guards are two webhooks, in the two kinds of configurations, and the kind of one of them.
const guards = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: guards}
webhooks:
- name: label.example.com
  clientConfig: {service: {namespace: guard-system, name: guard, path: /mutate}}
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {team: blue}}
  rules: [{operations: [CREATE, UPDATE, CONNECT], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guards}
webhooks:
- name: size.example.com
  clientConfig: {service: {namespace: guard-system, name: guard, path: /validate}}
  sideEffects: None
  admissionReviewVersions: [v1]
  objectSelector: {matchLabels: {guarded: "yes"}}
  matchConditions: [{name: big, expression: request.operation == 'DELETE' || object.spec.size > 3}]
  rules:
  - {operations: [CREATE, UPDATE, DELETE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets, widgets/status]}
  - {operations: [CREATE], apiGroups: [none.example.com], apiVersions: [v1], resources: [nones]}
- name: never.example.com
  clientConfig: {service: {namespace: guard-system, name: guard, path: /validate}}
  sideEffects: None
  admissionReviewVersions: [v1]
  matchConditions: [{name: never, expression: "object.spec.size > 3 && object.spec.size < 2"}]
  rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]
- name: kept.example.com
  clientConfig: {service: {namespace: guard-system, name: guard, path: /validate}}
  sideEffects: None
  admissionReviewVersions: [v1]
  objectSelector: {matchExpressions: [{key: kept, operator: Exists}]}
  rules: [{operations: [DELETE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]
`

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 4}}}
          status: {type: object}
`

// writeGuards writes the configurations, and returns their folder and the arguments of init.
func writeGuards(t *testing.T) (dir string, args []string) {
	t.Helper()
	dir = write(t, map[string]string{"config/webhooks.yaml": guards, "config/crd.yaml": widgets})
	return dir, []string{"init", filepath.Join(dir, "config", "webhooks.yaml"), filepath.Join(dir, "config", "crd.yaml"), "--to", filepath.Join(dir, "webhooks.yaml")}
}

// wantInFile returns the content of a file, which must have texts.
func wantInFile(t *testing.T, name string, texts ...string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range texts {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in:\n%s", want, data)
		}
	}
	return string(data)
}

// wantOnly checks that a folder has only these files and folders.
func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(names, entry.Name()) {
			t.Errorf("there is %s", entry.Name())
		}
	}
}

// Without a program, init writes requests that reach the webhooks, twice the same, and says what is missing.
func TestInitWebhooks(t *testing.T) {
	t.Parallel()
	dir, args := writeGuards(t)
	got := execute(t.Context(), nil, args...)
	got.check(t, exitPass, "6 scenarios; missing: 3", "webhooks.yaml -- PROGRAM")
	text := wantInFile(t, filepath.Join(dir, "webhooks.yaml"),
		"name: webhooks.label.example.com.mutating.create-configmap", "name: webhooks.label.example.com.mutating.update-configmap",
		"name: webhooks.size.example.com.validating.delete-widget", "name: webhooks.kept.example.com.validating.delete-secret",
		"- config/webhooks.yaml", "- config/crd.yaml", "team: blue", `guarded: "yes"`, "kept: example",
		"kinds: only requests for a ConfigMap", "# - size.example.com: widgets/status: only requests for the object itself",
		"name: webhooks.size.example.com.validating.create-widget", "size: 4", "# - never.example.com: CREATE of Widget: it does not reach the webhook",
	)
	wantOnly(t, dir, "config", "webhooks.yaml")
	if err := os.Remove(filepath.Join(dir, "webhooks.yaml")); err != nil {
		t.Fatal(err)
	}
	execute(t.Context(), nil, args...).check(t, exitPass)
	if again := wantInFile(t, filepath.Join(dir, "webhooks.yaml")); again != text {
		t.Errorf("another file:\n%s\nwant:\n%s", again, text)
	}
}

func TestInitWebhooksMisuse(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: a}\n"
	const served = "clientConfig: {service: {namespace: a, name: a}}, sideEffects: None, admissionReviewVersions: [v1], "
	const rule = "rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]"
	for name, test := range map[string]struct {
		text, want string
		args       []string
	}{
		"no YAML":      {head + "webhooks: [", ":4:", nil},
		"no list":      {head + "webhooks: {}", ":4:1: MutatingWebhookConfiguration a: a field has another type", nil},
		"no map":       {head + "webhooks:\n- a", ":4:1: MutatingWebhookConfiguration a: a field has another type", nil},
		"a wrong type": {head + "webhooks:\n- {name: 1}", ":4:1: MutatingWebhookConfiguration a: a field has another type", nil},
		"a condition":  {head + "webhooks:\n- {name: a.example.com, " + served + rule + ",\n   matchConditions: [{name: a, expression: 'object.'}]}", ":6:32: MutatingWebhookConfiguration a: webhooks[0].matchConditions[0].expression", nil},
		"a field":      {head + "webhooks:\n- {name: a.example.com, sideEfects: None, " + served + rule + "}", `unknown field "webhooks[0].sideEfects"`, nil},
		"no schema": {head + "webhooks:\n- {name: a.example.com, " + served + rule + "}\n---\n" + widgets[:strings.Index(widgets, "    subresources")],
			":15:5: CustomResourceDefinition widgets.example.com: spec.versions[0].schema", nil},
		"policies too":    {head + "---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}}", ":1 has webhooks and ", nil},
		"no such program": {head + "webhooks:\n- {name: a.example.com, " + served + rule + "}", `program "./none" cannot be run`, []string{"--", "./none"}},
		"no program":      {head, "-- without a program", []string{"--"}},
		"only a program":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "the files have no webhook configuration", []string{"--", "sh"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"webhook.yaml": test.text})
			got := execute(t.Context(), nil, append([]string{"init", filepath.Join(dir, "webhook.yaml"), "--to", filepath.Join(dir, "test.yaml")}, test.args...)...)
			got.check(t, exitUsage, test.want)
			wantOnly(t, dir, "webhook.yaml")
		})
	}
}

// An interrupted init leaves no file.
func TestInitWebhooksInterrupted(t *testing.T) {
	t.Parallel()
	dir, args := writeGuards(t)
	for _, after := range []string{"finding requests", "sending the requests"} {
		ctx, cancel := context.WithCancel(t.Context())
		a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: cancelAt{after, cancel}}, catalogue: fixture()}
		if code := a.main(ctx, args); code != exitInterrupted {
			t.Errorf("interrupted after %q: exit code %d; want %d", after, code, exitInterrupted)
		}
		cancel()
		wantOnly(t, dir, "config")
	}
}

// cancelAt is a writer that calls cancel when a string is written.
type cancelAt struct {
	text   string
	cancel func()
}

func (c cancelAt) Write(data []byte) (int, error) {
	if strings.Contains(string(data), c.text) {
		c.cancel()
	}
	return len(data), nil
}
