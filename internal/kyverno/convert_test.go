package kyverno

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// Each kind of result becomes a case, or is named as left out. The PolicyTest can be loaded.
func TestConvert(t *testing.T) {
	t.Chdir(filepath.Join("testdata", "tests"))
	got, err := Convert(filepath.Join("mixed", "kyverno-test.yaml"), ".")
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "mixed" {
		t.Errorf("name: got %q, want mixed", got.Name)
	}
	golden.Compare(t, filepath.Join("..", "mixed.golden"), got.Text+"---\nleft out:\n"+strings.Join(got.LeftOut, "\n")+"\n")
	all, err := scenario.Load(scenario.LoadOptions{Input: strings.NewReader(got.Text)}, "-")
	if err != nil || len(scenario.Cases(all)) < 7 {
		t.Errorf("the PolicyTest: got %d cases, %v", len(scenario.Cases(all)), err)
	}
}

func TestConvertNothing(t *testing.T) {
	got, err := Convert(filepath.Join("testdata", "tests", "other", "kyverno-test.yaml"), ".")
	if err != nil || got.Text != "" || len(got.LeftOut) != 1 {
		t.Errorf("got %+v, %v; want nothing but what is left out", got, err)
	}
}

func TestConvertRefuses(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ name, content, want string }{
		{"kind.yaml", "kind: Policy", `kind is "Policy"; expected a kyverno Test`},
		{"syntax.yaml", "kind: [", "syntax.yaml: error converting YAML"},
		{"type.yaml", "kind: Test\npolicies: 3", "type.yaml: error unmarshaling"},
		{"missing.yaml", "kind: Test\npolicies: [none.yaml]", "none.yaml: no such file"},
		{"values.yaml", "kind: Test\npolicies: [p.yaml]\nresources: [r.yaml]\nvariables: none.yaml\nresults: [{isValidatingAdmissionPolicy: true, policy: p, kind: Pod, result: pass}]", "read variables:"},
		{"large.yaml", strings.Repeat("#", userfile.MaxBytes+1), "want at most 8388608"},
		{"manifest.yaml", "kind: Test\npolicies: [list.yaml]", "list.yaml: error unmarshaling"},
		{".", "", "is not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, content := range map[string]string{
				c.name: c.content, "list.yaml": "[1]", "r.yaml": "{kind: Pod, metadata: {name: a}}",
				"p.yaml": "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}}",
			} {
				if name == "." {
					continue
				}
				if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Convert(filepath.Join(folder, c.name), "."); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestScalar(t *testing.T) {
	for text, want := range map[string]string{
		"a": `"a"`, "ab": "ab", "yes": `"yes"`, "a: b": `"a: b"`, "1": `"1"`, "a#B/c.d": "a#B/c.d", "a #b": `"a #b"`, "": `""`,
		"é": `"é"`, "-a": `"-a"`, "x\n": `"x\n"`, "Null": `"Null"`, "../a/b.yaml": "../a/b.yaml",
	} {
		t.Run(text, func(t *testing.T) {
			if got := scalar(text); got != want {
				t.Errorf("scalar(%q): got %s, want %s", text, got, want)
			}
		})
	}
}
