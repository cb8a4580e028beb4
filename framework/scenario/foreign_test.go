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
		foreign bool // false: an error
	}{
		"deployment.yaml": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", true},
		"policy.yaml":     {"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {labels: {admissiontest.dev/run: x}}\n", true},
		"template.yaml":   {"{{ if .Values.a }}\nkind: Deployment\n{{ end }}\n", true},
		"anchor.yml":      {"a: &a 1\nb: *a\n", true},
		"list.json":       {"[1, 2]", true},
		"empty.yaml":      {"# nothing\n", true},
		"large.yaml":      {"kind: CustomResourceDefinition\n" + strings.Repeat("# a\n", document.MaxBytes/4), true},

		"syntax.yaml":        {good + "a: b: c", false},
		"version.yaml":       {strings.Replace(good, "admissiontest.dev/v1alpha1", "example.com/v1", 1), false},
		"kind.yaml":          {strings.Replace(good, "Scenario", "Scenari", 1), false},
		"case.yaml":          {"apiVersion: example.com/v1\nkind: scenario\n", false},
		"without-both.yaml":  {"metadata: {name: a.b}\nspec: {when: []}\n", false},
		"second.yaml":        {"apiVersion: v1\nkind: Service\n---\n" + good, false},
		"large-scenario.yml": {good + strings.Repeat("# a\n", document.MaxBytes/4), false},
		"oneline.json":       {`{"metadata": {}, "kind": "Scenario"}`, false},
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
			case !one.foreign:
				if err == nil || !strings.Contains(err.Error(), path) || len(lines) > 0 {
					t.Errorf("got %v, %q; want an error", err, lines)
				}
			case err != nil || len(loaded) != 1 || !slices.Equal(lines, []string{"ignored " + path + ": not a Scenario"}):
				t.Errorf("got %d scenarios, %v, %q; want it ignored", len(loaded), err, lines)
			}
			if _, err := Load(LoadOptions{}, filepath.Join(dir, name)); err == nil {
				t.Error("given itself, it is no error")
			}
			if loaded, err := Load(LoadOptions{}, dir); one.foreign && (err != nil || len(loaded) != 1) {
				t.Errorf("Paths returns %d scenarios, %v", len(loaded), err)
			}
		})
	}
}
