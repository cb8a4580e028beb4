package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

const withStepFile = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: a.b}
spec:
  level: MUST
  requirement: A requirement.
  when:
    - create: {file: objects/good.yaml}
    - parallel:
        - update: {file: objects/good.yaml}
`

// A manifest of a step can be in another file, and its errors are there. Scenarios of users need no
// source.
func TestStepFiles(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"a.yaml":            {Data: []byte(withStepFile)},
		"objects/good.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndta: {}\n")},
		"objects/two.yaml":  {Data: []byte("apiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: ConfigMap\n")},
		"objects/bad.yaml":  {Data: []byte("apiVersion: v1\nsecret: x\n")},
	}
	loaded, err := Load(LoadOptions{FS: tree}, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	steps := loaded[0].Spec.When
	if steps[0].Create["kind"] != "ConfigMap" || steps[1].Parallel[0].Update["kind"] != "ConfigMap" {
		t.Errorf("got steps %+v; want the manifests of the file", steps)
	}
	for _, manifest := range []string{"when[0].create", "when[1].parallel[0].update"} {
		if got := loaded[0].ErrorAt(manifest, "dta", "m", "").Error(); got != "objects/good.yaml:4:1: m" {
			t.Errorf("%s: got %s", manifest, got)
		}
	}
	for file, want := range map[string]string{
		"objects/none.yaml": "a.yaml:8:22: spec.when[0].create.file \"objects/none.yaml\": cannot be read",
		"objects/two.yaml":  "has 2 manifests; expected one",
		"objects/bad.yaml":  "objects/bad.yaml:1:1: objects/bad.yaml[0] has no kind",
		"../out.yaml":       "outside of",
	} {
		t.Run(file, func(t *testing.T) {
			tree["a.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(withStepFile, "objects/good.yaml", file, 1))}
			if _, err := Load(LoadOptions{FS: tree}, "a.yaml"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %q", err, want)
			}
		})
	}
}

// An item of install can be all manifests of a file.
func TestInstallFile(t *testing.T) {
	t.Parallel()
	const scenarioText = "apiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: a.b}\nspec:\n  level: MUST\n  requirement: A requirement.\n  when:\n" +
		"    - install: [{file: objects/good.yaml}, {apiVersion: v1, kind: Secret, metadata: {name: x}}]\n    - create: {apiVersion: v1, kind: Pod, metadata: {name: x}}\n      then: {refusedBy: {webhook: w.example.com}}\n"
	tree := fstest.MapFS{
		"a.yaml": {Data: []byte(scenarioText)},
		"objects/good.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
			"metadata: {name: x}\nwebhooks: [{name: w.example.com, odd: 1}]\n")},
		"objects/bad.yaml": {Data: []byte("apiVersion: v1\nsecret: x\n")},
	}
	loaded, err := Load(LoadOptions{FS: tree}, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []any
	for _, manifest := range loaded[0].Spec.When[0].Install {
		kinds = append(kinds, manifest["kind"])
	}
	if diff := cmp.Diff([]any{"ConfigMap", "ValidatingWebhookConfiguration", "Secret"}, kinds); diff != "" {
		t.Errorf("installed (-want +got)\n%s", diff)
	}
	if got := loaded[0].ErrorAt("when[0].install[1]", "webhooks[0].odd", "m", "").Error(); got != "objects/good.yaml:8:34: m" {
		t.Errorf("got %s", got)
	}
	for file, want := range map[string]string{
		"objects/none.yaml": `a.yaml:8:24: spec.when[0].install[0].file "objects/none.yaml": cannot be read`,
		"objects/bad.yaml":  "objects/bad.yaml:1:1: ",
		"../out.yaml":       "outside of",
	} {
		t.Run(file, func(t *testing.T) {
			tree["a.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(scenarioText, "objects/good.yaml", file, 1))}
			if _, err := Load(LoadOptions{FS: tree}, "a.yaml"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %q", err, want)
			}
		})
	}
}

// refusedBy accepts the names of webhooks that are installed for all scenarios.
func TestRefusedByInstalled(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: a.b}\nspec:\n  level: MUST\n  requirement: A requirement.\n  when:\n" +
		"    - create: {apiVersion: v1, kind: Pod, metadata: {name: x}}\n      then: {refusedBy: {webhook: w.example.com}}\n")}}
	for want, options := range map[string]LoadOptions{
		`no webhook has the name "w.example.com"; expected`: {Installed: []string{"v.example.com"}},
		"": {Installed: []string{"w.example.com"}},
	} {
		t.Run(want, func(t *testing.T) {
			options.FS = tree
			if _, err := Load(options); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	if _, err := Load(LoadOptions{FS: tree, AnyInstalled: true}); err != nil {
		t.Errorf("any name: %v", err)
	}
}

// The input is read as a file in the working directory.
func TestLoadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("objects", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("objects", "good.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(LoadOptions{Input: strings.NewReader(withStepFile)}, "-", "-")
	if err != nil || len(loaded) != 1 || loaded[0].File != "-" || loaded[0].Line != 3 {
		t.Errorf("got %+v, %v", loaded, err)
	}
	if _, err := Load(LoadOptions{Input: strings.NewReader("kind: x")}, "-"); err == nil || !strings.HasPrefix(err.Error(), "-:1:7: ") {
		t.Errorf("got %v; want errors with the position in the input", err)
	}
	if _, err := Load(LoadOptions{Input: strings.NewReader(strings.Repeat("#", document.MaxBytes+1))}, "-"); err == nil || !strings.Contains(err.Error(), "1048577 bytes") {
		t.Errorf("got %v; want the limit of the size", err)
	}
}
