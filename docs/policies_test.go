package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/golden"
)

// policyManual returns docs/policies.md, up to its table of lengths and from there.
func policyManual(t *testing.T) (text, table string) {
	t.Helper()
	content, err := os.ReadFile("policies.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "| test | admissiontest |"
	text, table, found := strings.Cut(string(content), begin)
	if !found {
		t.Fatalf("policies.md has no table that begins with %s", begin)
	}
	return text, begin + table
}

// The manual names each field of a PolicyTest, and its examples can be loaded.
func TestPolicyManual(t *testing.T) {
	text, _ := policyManual(t)
	var words []string
	for _, typ := range []reflect.Type{reflect.TypeFor[scenario.PolicyTest](), reflect.TypeFor[scenario.PolicyCase]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			switch name {
			case "apiVersion", "kind":
			case "metadata":
				words = append(words, "metadata.name")
			default:
				words = append(words, name)
			}
		}
	}
	for _, word := range missing(text, words) {
		t.Errorf("docs/policies.md does not explain %q", word)
	}
	policy, err := os.ReadFile("testdata/sizes/deny/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy = append(policy, "  auditAnnotations: [{key: seen, valueExpression: \"'by admin'\"}]\n"...)
	object := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}")}
	}
	files := fstest.MapFS{
		"x/policy.yaml": {Data: policy}, "x/good.yaml": object("good"), "x/bad.yaml": object("bad"),
		"x/binding.yaml": {Data: []byte("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: owner}}")},
	}
	blocks := strings.Split(text, "```yaml\n")[1:]
	if len(blocks) < 2 {
		t.Errorf("found %d examples, want at least 2", len(blocks))
	}
	for i, block := range blocks {
		example, _, _ := strings.Cut(block, "```")
		files["x/test.yaml"] = &fstest.MapFile{Data: []byte(example)}
		if got, err := scenario.Load(scenario.LoadOptions{FS: files}, "x/test.yaml"); err != nil || len(scenario.Cases(got)) < 3 {
			t.Errorf("example %d: got %d cases, %v", i+1, len(scenario.Cases(got)), err)
		}
		if lines := strings.Count(example, "\n"); i == 0 && lines > 10 {
			t.Errorf("the first example has %d lines, want at most 10", lines)
		}
	}
}

// A PolicyTest is at least as short as the same test of each other tool. The table in the manual
// has the numbers; with -update it is written.
func TestPolicyTestsAreShort(t *testing.T) {
	tools := []string{"admissiontest", "kyverno", "gator", "kat"}
	table := "| test | admissiontest | kyverno | gator | kat |\n|---|---|---|---|---|\n"
	for _, test := range []struct{ folder, says string }{
		{"deny", "one object is allowed, two are denied with a message (kyverno: without)"},
		{"mutate", "one object is mutated, one is not"},
		{"params", "a parameter, a namespace with a label, a user; one object is allowed, one denied"},
	} {
		line := "| " + test.says
		ours := 0
		for i, tool := range tools {
			length := lengthOf(t, os.DirFS(path.Join("testdata", "sizes", test.folder, tool)))
			switch {
			case length == 0:
				line += " | cannot"
				continue
			case i == 0:
				ours = length
			case length < ours:
				t.Errorf("%s: %s has %d characters, ours %d", test.folder, tool, length, ours)
			}
			line += fmt.Sprintf(" | %d", length)
		}
		table += line + " |\n"
	}
	text, _ := policyManual(t)
	golden.Compare(t, "policies.md", text+table)
}

// The PolicyTests that are counted can be loaded.
func TestCountedPolicyTestsLoad(t *testing.T) {
	for _, folder := range []string{"deny", "mutate", "params"} {
		t.Run(folder, func(t *testing.T) {
			files := fstest.MapFS{}
			for name, from := range map[string]string{"x/policy.yaml": "policy.yaml", "x/test.yaml": "admissiontest/test.yaml"} {
				content, err := os.ReadFile(path.Join("testdata", "sizes", folder, from)) //nolint:gosec // a name in a test
				if err != nil {
					t.Fatal(err)
				}
				files[name] = &fstest.MapFile{Data: content}
			}
			if got, err := scenario.Load(scenario.LoadOptions{FS: files}, "x/test.yaml"); err != nil || len(scenario.Cases(got)) < 2 {
				t.Errorf("got %d cases, %v", len(scenario.Cases(got)), err)
			}
		})
	}
}

// lengthOf returns the number of characters in files and in their names, or 0 for a folder that
// does not exist.
func lengthOf(t *testing.T, files fs.FS) int {
	t.Helper()
	if _, err := fs.Stat(files, "."); err != nil {
		return 0
	}
	length := 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		length += utf8.RuneCountInString(name) + utf8.RuneCount(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return length
}
