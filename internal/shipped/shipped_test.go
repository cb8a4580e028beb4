package shipped

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// write writes files, by name, to a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rendered is like the output of kustomize or helm.
const rendered = `# rendered
---
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec: {template: {spec: {volumes: [{name: certs, secret: {defaultMode: 0644}}]}}}
--- 
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Service, metadata: {name: a, namespace: system}}
  - {apiVersion: v1, kind: Service, metadata: {name: b, namespace: system}}
  - apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfigurationList
    items:
      - {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: []}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Limit}, largest: 9223372036854775807}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {paramKind: {apiVersion: v1, kind: ConfigMap}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, paramRef: {name: limit, namespace: system}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: q}
spec: {policyName: p, paramRef: {name: limit}}
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: m}
spec: {paramKind: {apiVersion: example.com/v1, kind: Limit}}
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: m}
spec: {policyName: m, paramRef: {selector: {}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: limit, namespace: system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: limit}}
---
{apiVersion: example.com/v1, kind: Limit, metadata: {name: all}}
`

func TestLoad(t *testing.T) {
	dir := write(t, map[string]string{
		"rendered.yaml": rendered, "kustomization.yaml": "resources: [a]", "other/ignored.yaml": "{", ".hidden.yaml": "{", "README.md": "{",
		"again.json":         `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limit", "namespace": "system"}}`,
		"kustomization2.yml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization",
	})
	p, err := Load(dir, filepath.Join(dir, "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range p.Manifests {
		got = append(got, m.String())
	}
	want := []string{
		"ValidatingWebhookConfiguration w", "CustomResourceDefinition limits.example.com", "ValidatingAdmissionPolicy p", "ValidatingAdmissionPolicyBinding p", "ValidatingAdmissionPolicyBinding q",
		"MutatingAdmissionPolicy m", "MutatingAdmissionPolicyBinding m", "ConfigMap limit", "Limit all",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	left := []string{
		"not installed: 2 ConfigMap (v1)", "not installed: 1 Deployment (apps/v1)", "not installed: 2 Service (v1)",
		"not installed: " + filepath.Join(dir, "kustomization.yaml") + ":1: not a Kubernetes object: it has no apiVersion or no kind",
		"not installed: " + filepath.Join(dir, "kustomization2.yml") + ":1: a Kustomization is not rendered: give the output of kustomize build",
	}
	if diff := cmp.Diff(left, p.LeftOut()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if largest := p.Objects()[1]["spec"].(map[string]any)["largest"]; largest != int64(9223372036854775807) {
		t.Errorf("an integer became %v", largest)
	}
	if nothing, err := Load(); err != nil || len(nothing.Objects()) > 0 || (*Project)(nil).Objects() != nil {
		t.Errorf("without paths: %v, %v", nothing, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	const webhooks = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: a\n"
	for name, one := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing of admission": {map[string]string{"a.yaml": "{apiVersion: v1, kind: Service, metadata: {name: a}}"}, "found nothing that decides about requests; expected webhook configurations, policies or CustomResourceDefinitions; give the output of kustomize build or helm template; not installed: 1 Service (v1)"},
		"no files":             {map[string]string{"crd/a.yaml": webhooks}, "the folder has no files *.yaml"},
		"template":             {map[string]string{"a.yaml": webhooks + "---\n# comment\nkind: {{ .Values.kind }}\n"}, "a.yaml:6:1: not a map in YAML or JSON: "},
		"template's hint":      {map[string]string{"a.yaml": "kind: {{ .Values.kind }}\n"}, "give the output of helm template"},
		"syntax":               {map[string]string{"a.yaml": webhooks + "---\na: b\nc: d: e\n"}, "a.yaml:7:1: not a map in YAML or JSON: mapping values are not allowed"},
		"field twice":          {map[string]string{"a.yaml": webhooks + "kind: b\n"}, `a.yaml:5:1: not a map in YAML or JSON: `},
		"a list":               {map[string]string{"a.yaml": "[]"}, "a.yaml:1:1: not a map"},
		"no name":              {map[string]string{"a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {}\n"}, "a.yaml:3:1: the Service has no metadata.name"},
		"other content":        {map[string]string{"a.yaml": webhooks, "b.yaml": webhooks + "webhooks: []\n"}, "b.yaml:4:3: another ValidatingWebhookConfiguration a has different content; expected each object once; the other is at "},
		"policy missing": {
			map[string]string{"a.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: policy}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec:\n  policyName: polcy\n"},
			`a.yaml:9:3: ValidatingAdmissionPolicyBinding b: no ValidatingAdmissionPolicy "polcy" is installed; expected the policy of each binding; did you mean "policy"?`,
		},
		"items": {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- a\n"}, "a.yaml:4:3: items[0] is not a map"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, one.files))
			if err == nil || !strings.Contains(err.Error(), one.want) || len(scenario.Errors(err)) == 0 {
				t.Errorf("got %v; want %q", err, one.want)
			}
		})
	}
	deep := strings.Repeat(`{"apiVersion": "v1", "kind": "List", "items": [`, 20) + strings.Repeat("]}", 20)
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.yaml"): "none.yaml: cannot be read: no such file or directory",
		os.DevNull:                              "not a regular file",
		filepath.Join(write(t, map[string]string{"a.yaml": "a: b"}), "a.yaml"):     "a.yaml:1:1: the document has no apiVersion or no kind",
		filepath.Join(write(t, map[string]string{"deep.json": deep}), "deep.json"): "Lists in Lists, 8 deep",
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v; want %q", path, err, want)
			}
		})
	}
}

// An error about a field has its position in the file, one about a string the position of a character.
func TestErrorAt(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": "# comment\n---\n# more\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks:\n  - name: b\n    rules: [{scope: c}]\n" +
		"---\napiVersion: v1\nkind: List\nitems: [{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: b}}]\n"})
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"webhooks[0].rules[0].scope": "9:14", "webhooks[0].none": "8:5", "": "4:1", "webhooks[7]": "7:1"} {
		t.Run(field, func(t *testing.T) {
			if got := p.ErrorAt(0, field, "wrong", "").Error(); got != filepath.Join(dir, "a.yaml")+":"+want+": wrong" {
				t.Errorf("got %s; want %s", got, want)
			}
		})
	}
	if got := p.ErrorAt(1, "metadata.name", "wrong", "").Error(); !strings.HasSuffix(got, "a.yaml:13:104: wrong") {
		t.Errorf("an item: got %s", got)
	}
	for field, want := range map[string]string{"webhooks[0].rules[0].scope": "9:21", "webhooks[0].none": "8:5", "webhooks": "7:1"} {
		t.Run("in "+field, func(t *testing.T) {
			if got := p.ErrorIn(0, field, [2]int{1, 1}, "wrong").Error(); got != filepath.Join(dir, "a.yaml")+":"+want+": wrong" {
				t.Errorf("in %s: got %s; want %s", field, got, want)
			}
		})
	}
}

// No input makes Load panic.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(rendered))
	f.Add([]byte("kind: List\napiVersion: v1\nitems: [{}, [], 1]"))
	f.Add([]byte("---\n---"))
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Load(name)
		if err != nil && len(scenario.Errors(err)) == 0 {
			t.Errorf("an error without a position: %v", err)
		}
		if err == nil {
			_ = p.ErrorAt(0, "spec.a[0]", "", "")
			p.LeftOut()
		}
	})
}

// A file of very many documents is refused before each is decoded.
func TestManyDocuments(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(name, []byte(strings.Repeat("---\n{}\n", 1_000_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "a.yaml:20000:1: a file of 1000001 documents; expected at most 10000") {
		t.Errorf("got %.500v; want that it has too many documents", err)
	}
}
