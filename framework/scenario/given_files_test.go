package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// withGivenFiles is a scenario with manifests from a file, one of which it replaces.
const withGivenFiles = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.one}
spec:
  level: MUST
  requirement: A requirement.
  source: [https://example.com]
  givenFiles: [FILE]
  given:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: z}
      webhooks:
        - {name: hook.example.com}
        - {name: missing.example.com, clientConfig: {service: {namespace: $(namespace), name: missing}}}
  hooks: {hook.example.com: {allowed: true}}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      then: {calls: {include: [hook.example.com], exclude: [missing.example.com]}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
      then: {calls: []}
`

// Manifests from files come first, both on the disk and in an fs.FS.
func TestGivenFiles(t *testing.T) {
	manifests := read(t, filepath.Join("testdata", "manifests", "webhook.yaml"))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scenarios", "one.yaml"), strings.Replace(withGivenFiles, "FILE", "../config/webhook.yaml", 1))
	write(t, filepath.Join(dir, "config", "webhook.yaml"), manifests)
	fromDisk, err := LoadPaths(filepath.Join(dir, "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	fromFS, err := Load(fstest.MapFS{
		"scenarios/one.yaml":  {Data: []byte(strings.Replace(withGivenFiles, "FILE", "../config/webhook.yaml", 1))},
		"config/webhook.yaml": {Data: []byte(manifests)},
	}, "scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for name, loaded := range map[string][]Scenario{"disk": fromDisk, "FS": fromFS} {
		var kinds []string
		for _, manifest := range loaded[0].Spec.Given {
			kinds = append(kinds, manifest["kind"].(string))
		}
		if diff := cmp.Diff([]string{"ValidatingWebhookConfiguration", "ConfigMap", "ConfigMap", "MutatingWebhookConfiguration"}, kinds); diff != "" {
			t.Errorf("%s: given (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"guard-system/guard"}, WebhookServices(loaded)); diff != "" {
			t.Errorf("%s: services (-want +got)\n%s", name, diff)
		}
	}
}

func TestGivenFilesStayInTheFileSystem(t *testing.T) {
	_, err := Load(fstest.MapFS{"one.yaml": {Data: []byte(strings.Replace(withGivenFiles, "FILE", "../config/webhook.yaml", 1))}})
	want := `one.yaml:8:16: spec.givenFiles[0] "../config/webhook.yaml": the path leads out of the file system that the scenario was loaded from; expected a file of Kubernetes manifests; the path is relative to this file`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
