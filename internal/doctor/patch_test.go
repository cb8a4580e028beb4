package doctor

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// patched returns the report about files after the patches of findings.
func patched(t *testing.T, file string, findings ...Finding) *Report {
	t.Helper()
	project, err := shipped.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		at := slices.IndexFunc(project.Manifests, func(m shipped.Manifest) bool {
			return (&object{Unstructured: unstructured.Unstructured{Object: m.Object}}).String() == f.Object
		})
		operations, _ := json.Marshal(f.Patch)
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(project.Manifests[at].Object)
		if text, err = patch.Apply(text); err != nil {
			t.Fatalf("apply %s to %s: %v", operations, f.Object, err)
		}
		project.Manifests[at].Object = nil
		if err := json.Unmarshal(text, &project.Manifests[at].Object); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Judge(t.Context(), Input{Manifests: project.Manifests})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Each patch that is printed is applied, alone and after all others: its finding is gone, and there is no new one.
func TestPatches(t *testing.T) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	if len(files) < 60 {
		t.Fatalf("got %d files", len(files))
	}
	for _, file := range files {
		before := judge(t, file)
		of := func(f Finding) func(Finding) bool {
			return func(other Finding) bool {
				return other.Rule == f.Rule && other.Object == f.Object && other.Message == f.Message
			}
		}
		with := slices.DeleteFunc(slices.Clone(before.Findings), func(f Finding) bool { return len(f.Patch) == 0 })
		all := patched(t, file, with...)
		for _, f := range with {
			if slices.ContainsFunc(patched(t, file, f).Findings, of(f)) {
				t.Errorf("%s: the finding is still there after its patch: %s", file, f)
			}
			if slices.ContainsFunc(all.Findings, of(f)) {
				t.Errorf("%s: the finding is still there after the patches of all: %s", file, f)
			}
		}
		for _, f := range all.Findings {
			if !slices.ContainsFunc(before.Findings, of(f)) {
				t.Errorf("%s: the patches lead to a finding: %s", file, f)
			}
		}
	}
}
