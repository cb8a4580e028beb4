package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// A file in a folder that is not meant to be a scenario is passed over with a line. One that is meant
// to be a scenario is an error if it is broken, and so is any that is given itself.
func TestPassedOver(t *testing.T) {
	const good = "apiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: a.b}\nspec: {level: MUST, requirement: R., when: [{get: {apiVersion: v1, kind: ConfigMap, name: a}}]}\n"
	for name, one := range map[string]struct {
		content string
		why     string // empty: an error
	}{
		"deployment.yaml": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "a Deployment is not a Scenario"},
		"policy.yaml":     {"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {labels: {admissiontest.dev/run: x}}\n", "a ValidatingAdmissionPolicy is not a Scenario"},
		"template.yaml":   {"{{ if .Values.a }}\nkind: Deployment\n{{ end }}\n", "not a Scenario"},
		"anchor.yml":      {"a: &a 1\nb: *a\n", "not a Scenario"},
		"list.json":       {"[1, 2]", "not a Scenario"},
		"empty.yaml":      {"# nothing\n", "not a Scenario"},
		"large.yaml":      {"kind: CustomResourceDefinition\n" + strings.Repeat("# a\n", document.MaxBytes/4), "not a Scenario"},

		"syntax.yaml":        {good + "a: b: c", ""},
		"version.yaml":       {strings.Replace(good, "admissiontest.dev/v1alpha1", "example.com/v1", 1), ""},
		"kind.yaml":          {strings.Replace(good, "Scenario", "Scenari", 1), ""},
		"case.yaml":          {"apiVersion: example.com/v1\nkind: scenario\n", ""},
		"without-both.yaml":  {"metadata: {name: a.b}\nspec: {when: []}\n", ""},
		"second.yaml":        {"apiVersion: v1\nkind: Service\n---\n" + good, ""},
		"large-scenario.yml": {good + strings.Repeat("# a\n", document.MaxBytes/4), ""},
		"oneline.json":       {`{"metadata": {}, "kind": "Scenario"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"good.yaml": good, name: one.content} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var lines []string
			loaded, err := Load(LoadOptions{PassedOver: func(line string) { lines = append(lines, line) }}, dir)
			switch path := filepath.Join(dir, name); {
			case one.why == "":
				if err == nil || !strings.Contains(err.Error(), path) || len(lines) > 0 {
					t.Errorf("got %v, %q; want an error", err, lines)
				}
			case err != nil || len(loaded) != 1 || !slices.Equal(lines, []string{"ignored " + path + ": " + one.why}):
				t.Errorf("got %d scenarios, %v, %q; want it ignored: %s", len(loaded), err, lines, one.why)
			}
			if _, err := Load(LoadOptions{}, filepath.Join(dir, name)); err == nil {
				t.Error("given itself, it is no error")
			}
			if loaded, err := Load(LoadOptions{}, dir); one.why != "" && (err != nil || len(loaded) != 1) {
				t.Errorf("Paths returns %d scenarios, %v", len(loaded), err)
			}
		})
	}
}
