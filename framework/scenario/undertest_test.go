package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// underTest is a scenario with a project's own manifests, and one that takes the
// place of a manifest from a file.
const underTest = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.one}
spec:
  level: MUST
  requirement: A law.
  source: [https://example.com]
  givenFiles: [FILE]
  given:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: z}
      webhooks:
        - {name: ours.example.com}
        - {name: nobody.example.com, clientConfig: {service: {namespace: $(namespace), name: nobody}}}
  hooks: {ours.example.com: {allowed: true}}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      then: {calls: {include: [ours.example.com], exclude: [nobody.example.com]}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
      then: {calls: []}
`

// What is in the files comes first, whether they lie on the disk or in an fs.FS.
func TestGivenFiles(t *testing.T) {
	manifests := read(t, filepath.Join("testdata", "manifests", "webhook.yaml"))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scenarios", "one.yaml"), strings.Replace(underTest, "FILE", "../config/webhook.yaml", 1))
	write(t, filepath.Join(dir, "config", "webhook.yaml"), manifests)
	fromDisk, err := LoadPaths(filepath.Join(dir, "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	fromFS, err := Load(fstest.MapFS{
		"scenarios/one.yaml":  {Data: []byte(strings.Replace(underTest, "FILE", "../config/webhook.yaml", 1))},
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
		if diff := cmp.Diff([]string{"guard-system/guard"}, Services(loaded)); diff != "" {
			t.Errorf("%s: services (-want +got)\n%s", name, diff)
		}
	}
}

func TestGivenFilesStayInTheFileSystem(t *testing.T) {
	_, err := Load(fstest.MapFS{"one.yaml": {Data: []byte(strings.Replace(underTest, "FILE", "../config/webhook.yaml", 1))}})
	want := `one.yaml:8:16: spec.givenFiles[0] "../config/webhook.yaml": the path leads out of the file system that the scenario was loaded from; expected a file of Kubernetes manifests; the path is relative to this file`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// A step can install a webhook under test, too.
func TestServicesOfSteps(t *testing.T) {
	configuration := func(namespace string) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": namespace, "name": "s"}}}}}
	}
	got := Services([]Scenario{{Spec: Spec{When: []Step{
		{Install: []map[string]any{configuration("b"), configuration("$(id)")}},
		{Parallel: []Step{{Create: configuration("a")}}}, {Update: map[string]any{"webhooks": "odd"}},
	}}}})
	if diff := cmp.Diff([]string{"a/s", "b/s"}, got); diff != "" {
		t.Errorf("services (-want +got)\n%s", diff)
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
