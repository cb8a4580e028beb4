package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
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
	fromDisk, err := Load(LoadOptions{}, filepath.Join(dir, "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	fromFS, err := Load(LoadOptions{FS: fstest.MapFS{
		"scenarios/one.yaml":  {Data: []byte(strings.Replace(withGivenFiles, "FILE", "../config/webhook.yaml", 1))},
		"config/webhook.yaml": {Data: []byte(manifests)},
	}}, "scenarios")
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
	}
}

const secretText = "hunter2-0644"

// secretFile returns a file outside of a tree, which is not a manifest.
func secretFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	write(t, name, secretText)
	return name
}

// A file outside of the tree is refused, by a path and by a symbolic link, and its content
// is not in the error.
func TestGivenFilesStayInTheTree(t *testing.T) {
	secret := secretFile(t)
	for name, one := range map[string]struct {
		marks, given, file string
		link               string // where there is a link to the secret
		outside            bool
	}{
		"in the folder above":           {"", "scenarios", "../config/webhook.yaml", "", false},
		"out of the tree and back":      {"project/go.mod", "scenarios", "../../project/config/webhook.yaml", "", true},
		"above the folder above":        {"", "scenarios", "../../outside.yaml", "", true},
		"above, of one file":            {"", "scenarios/one.yaml", "../../outside.yaml", "", true},
		"in the Git repository":         {".git/HEAD", "scenarios", "../../outside.yaml", "", false},
		"in the Go module":              {"go.mod", "scenarios", "../../outside.yaml", "", false},
		"above the Git repository":      {".git/HEAD", "scenarios", "../../../outside.yaml", "", true},
		"in a marked temporary folder":  {"../go.mod", "scenarios", "../../outside.yaml", "", true},
		"by many dots":                  {".git/HEAD", "scenarios", "../../../../../../../../../../.." + secret, "", true},
		"a missing file above":          {"", "scenarios", "../../../none.yaml", "", true},
		"by a link":                     {".git/HEAD", "scenarios", "../config/link.yaml", "project/config/link.yaml", true},
		"by a link to its folder":       {".git/HEAD", "scenarios", "../config/link/secret", "project/config/link", true},
		"by a link without a tree mark": {"", "scenarios", "link", "project/scenarios/link", true},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary) // what is above it does not count
			dir := filepath.Join(temporary, "work")
			manifests := read(t, filepath.Join("testdata", "manifests", "webhook.yaml"))
			write(t, filepath.Join(dir, "project", "scenarios", "one.yaml"), strings.Replace(withGivenFiles, "FILE", one.file, 1))
			write(t, filepath.Join(dir, "project", "config", "webhook.yaml"), manifests)
			write(t, filepath.Join(dir, "outside.yaml"), manifests)
			write(t, filepath.Join(dir, "..", "outside.yaml"), manifests)
			if one.marks != "" {
				write(t, filepath.Join(dir, one.marks), "")
			}
			if one.link != "" {
				target := secret
				if strings.Contains(one.file, "/link/") {
					target = filepath.Dir(secret)
				}
				if err := os.Symlink(target, filepath.Join(dir, one.link)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Load(LoadOptions{}, filepath.Join(dir, "project", one.given))
			switch {
			case !one.outside && err != nil:
				t.Error(err)
			case one.outside && (err == nil || !strings.Contains(err.Error(), "outside of the tree") || strings.Contains(err.Error(), "hunter")):
				t.Errorf("got %v; want a refusal without the content", err)
			}
		})
	}
}

// A link in the tree that stays there is followed.
func TestGivenFilesFollowLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scenarios", "one.yaml"), strings.Replace(withGivenFiles, "FILE", "../config/link.yaml", 1))
	write(t, filepath.Join(dir, "config", "webhook.yaml"), read(t, filepath.Join("testdata", "manifests", "webhook.yaml")))
	link := filepath.Join(dir, "config", "link.yaml")
	if err := os.Symlink("webhook.yaml", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(LoadOptions{}, filepath.Join(dir, "scenarios")); err != nil {
		t.Error(err)
	}
}

// An error of a given file has the position, but no value of the file.
func TestGivenFilesAreNotQuoted(t *testing.T) {
	for name, content := range map[string]string{
		"text":           "hunter2",
		"quoted":         `"hunter2"`,
		"number":         "apiVersion: v1\nkind: Secret\ndata: {a: 0777123}",
		"large":          "apiVersion: v1\nkind: Secret\ndata: {a: 77712377712377712377123}",
		"word":           "apiVersion: v1\nkind: Secret\ndata: {a: yes}",
		"tag":            "apiVersion: v1\nkind: Secret\ndata: {a: !hunter2 x}",
		"kind":           "apiVersion: v1\nkind: 77712",
		"no closing":     "apiVersion: v1\nkind: Secret\ndata: {a: \"hunter2",
		"bad escape":     "apiVersion: v1\nkind: Secret\ndata: {a: \"\\qhunter2\"}",
		"no map":         "apiVersion: v1\nkind: Secret\ndata:\n  hunter2\n  b: hunter2: hunter2",
		"unclosed flow":  "{apiVersion: v1, kind: Secret, hunter2",
		"alias":          "apiVersion: v1\nkind: Secret\ndata: {a: *hunter2}",
		"directive":      "%hunter2 x\n---\na: b",
		"private key":    "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n",
		"block header":   "apiVersion: v1\nkind: Secret\na: |hunter2\n  x",
		"anchor":         "...#: {*hunter2 ",
		"list of values": "- hunter2\n- hunter2\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(LoadOptions{FS: fstest.MapFS{
				"one.yaml": {Data: []byte(strings.Replace(withGivenFiles, "FILE", "config/a.yaml", 1))}, "config/a.yaml": {Data: []byte(content)},
			}}, "one.yaml")
			if err == nil || !strings.Contains(err.Error(), "config/a.yaml:") {
				t.Fatalf("got %v; want an error with the position", err)
			}
			for _, value := range []string{"hunter", "777", "yes", "BEGIN"} {
				if strings.Contains(err.Error(), value) {
					t.Errorf("the error shows %s: %v", value, err)
				}
			}
		})
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

// A file of manifests can have more than one of scenarios: a CustomResourceDefinition of 1 MB.
func TestLargeGivenFile(t *testing.T) {
	const uses = "apiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: a.b}\nspec: {level: MUST, requirement: R., givenFiles: [crd.yaml], when: [{get: {apiVersion: v1, kind: ConfigMap, name: a}}]}\n"
	for size, want := range map[int]bool{3 * document.MaxBytes: true, document.MaxManifestBytes + 1: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {description: \"\"}\n"
			crd = strings.Replace(crd, `""`, `"`+strings.Repeat("d", size-len(crd))+`"`, 1)
			loaded, err := Load(LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(uses)}, "crd.yaml": {Data: []byte(crd)}}}, "a.yaml")
			if (err == nil) != want || want && len(loaded[0].Spec.Given) != 1 {
				t.Errorf("%d bytes: got %v; want none: %t", size, err, want)
			}
		})
	}
}
