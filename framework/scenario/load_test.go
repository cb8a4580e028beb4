package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/hook"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// valid is a scenario to break, in as few lines as possible.
const valid = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: NAME}
spec:
  level: MUST
  requirement: A requirement.
  source: [https://example.com]
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
`

func named(name string) string { return strings.Replace(valid, "NAME", name, 1) }

func TestLoadCatalogue(t *testing.T) {
	scenarios, err := Load(LoadOptions{FS: os.DirFS(filepath.Join("testdata", "good"))})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Name, File, Area string
		Lines            []int
	}
	var got []seen
	for _, one := range scenarios {
		got = append(got, seen{one.Metadata.Name, one.File, one.Area, one.Lines})
	}
	want := []seen{
		{"reinvocation.if-needed.again-after-later-change", "reinvocation/again.yaml", "reinvocation", []int{27, 34}},
		{"wire.json", "wire/tabs.json", "wire", []int{10}},
		{"wire.one", "wire/several.yml", "wire", []int{64}},
		{"wire.two", "wire/several.yml", "wire", []int{33, 37, 38, 43, 49, 50}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scenarios (-want +got)\n%s", diff)
	}
}

func TestLoadDecodes(t *testing.T) {
	scenarios, err := Load(LoadOptions{FS: os.DirFS(filepath.Join("testdata", "good"))}, "reinvocation/again.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec := scenarios[0].Spec
	webhooks := spec.Given[0]["webhooks"].([]any)
	if got := webhooks[1].(map[string]any)["timeoutSeconds"]; got != int64(9007199254740993) {
		t.Errorf("a large integer became %T %v, want int64", got, got)
	}
	first := spec.Hooks["first.example.com"]
	if first.Delay != hook.Duration(150*time.Millisecond) {
		t.Errorf("delay is %d", first.Delay)
	}
	empty := ""
	no := false
	want := []Step{{
		Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "subject", "annotations": map[string]any{}}},
		Then: &Expectation{
			Allowed: &no,
			Code:    OneOrMore[int]{409},
			Reason:  OneOrMore[string]{"AlreadyExists", "Conflict"},
			Object: map[string]any{
				"data": map[string]any{"second": "seen"}, "weight": 1.5, "gone": nil,
				"uid": map[string]any{"$nonEmpty": true},
			},
			Calls: &Calls{InOrder: []Call{{Webhook: "first.example.com"}, {Webhook: "second.example.com", Phase: "mutating"}, {Webhook: "first.example.com"}}},
		},
	}, {
		ID:        "again",
		Get:       &ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "subject"},
		Namespace: &empty,
		Then:      &Expectation{Calls: &Calls{InOrder: []Call{}}},
	}}
	if diff := cmp.Diff(want, spec.When); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
}

func TestLoadReadsJSON(t *testing.T) {
	scenarios, err := Load(LoadOptions{}, filepath.Join("testdata", "good", "wire", "tabs.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := scenarios[0].Spec.Requirement, "JSON is read too: \"quoted\" é / 😀."; got != want {
		t.Errorf("requirement is %q, want %q", got, want)
	}
	metadata := scenarios[0].Spec.When[0].Create["metadata"]
	want := map[string]any{"name": "a", "n": int64(-3), "empty": map[string]any{}, "none": []any{}}
	if diff := cmp.Diff(any(want), metadata); diff != "" {
		t.Errorf("metadata (-want +got)\n%s", diff)
	}
}

func TestLoadTakesTheFirstFolderAsArea(t *testing.T) {
	fsys := fstest.MapFS{
		"wire/deep/a.yaml": {Data: []byte(named("wire.a"))},
		"b.yaml":           {Data: []byte(named("wire.b"))},
		"wire/notes.txt":   {Data: []byte("not a scenario")},
		".hidden/c.yaml":   {Data: []byte("not a scenario")},
		"wire/.c.yaml":     {Data: []byte("not a scenario")},
	}
	scenarios, err := Load(LoadOptions{FS: fsys}, ".", "wire")
	if err != nil {
		t.Fatal(err)
	}
	if len(scenarios) != 2 || scenarios[0].Area != "wire" || scenarios[1].Area != "" {
		t.Errorf("got %+v", scenarios)
	}
}

func TestPathsReadsEachFileOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mine", "a.yaml"), named("mine.a"))
	write(t, filepath.Join(dir, "mine", ".git", "b.yaml"), "not a scenario")
	write(t, filepath.Join(dir, "mine", "strange.txt"), named("mine.c"))
	link(t, "mine", filepath.Join(dir, "other"))
	link(t, "a.yaml", filepath.Join(dir, "mine", "b.yaml"))
	t.Chdir(dir)
	scenarios, err := Load(LoadOptions{}, "mine", filepath.Join(dir, "mine", "a.yaml"), "other", "mine/strange.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(scenarios) != 2 {
		t.Fatalf("got %d scenarios, want 2", len(scenarios))
	}
	if got := scenarios[0]; got.Area != "mine" || got.File != filepath.Join("mine", "a.yaml") {
		t.Errorf("got file %s in area %s", got.File, got.Area)
	}
	if scenarios, err := Load(LoadOptions{}); len(scenarios) != 0 || err != nil {
		t.Errorf("without a path: %v, %v", scenarios, err)
	}
}

func TestPathsRefusesWhatIsNoScenarioFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "loop/in/a.yaml", named("loop.a"))
	link(t, filepath.Join(dir, "loop"), filepath.Join("loop", "in", "again"))
	link(t, "itself", "itself")
	link(t, "nowhere.yaml", filepath.Join("loop", "in", "dangling.yaml"))
	write(t, "large.yaml", "")
	if err := os.Truncate("large.yaml", 50<<20); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("pipe.yaml", 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	for path, want := range map[string]string{
		"loop":       "loop/in/again: cannot be read: a symbolic link out of the tree of the folder; expected a scenario file or a folder of them\nloop/in/dangling.yaml: cannot be read: no such file or directory; expected a scenario file or a folder of them; check the path",
		"itself":     "itself: cannot be read: too many levels of symbolic links; expected a scenario file or a folder of them",
		"missing":    "missing: cannot be read: no such file or directory; expected a scenario file or a folder of them; check the path",
		"large.yaml": "large.yaml:1:1: a file of 52428800 bytes; expected a smaller scenario file; split it, or check the path",
		"pipe.yaml":  "pipe.yaml: cannot be read: not a regular file; expected a scenario file or a folder of them",
	} {
		t.Run(path, func(t *testing.T) {
			_, err := Load(LoadOptions{}, path)
			if err == nil || err.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
}

func TestErrorsOfOneFileAreBounded(t *testing.T) {
	var content strings.Builder
	for i := range 5 * document.MaxProblems {
		fmt.Fprintf(&content, "key%d: 1\n", i)
	}
	_, err := Load(LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(content.String())}}})
	all := Errors(err)
	if len(all) != document.MaxProblems+1 {
		t.Fatalf("got %d errors, want %d and one that counts the others", len(all), document.MaxProblems)
	}
	if want := "a.yaml:100:1: and 400 more errors; expected a file of scenarios; fix those above first"; all[document.MaxProblems].Error() != want {
		t.Errorf("got  %s\nwant %s", all[document.MaxProblems], want)
	}
}

func TestErrorsAreTypedAndInOrder(t *testing.T) {
	fsys := fstest.MapFS{
		"a/b.yaml": {Data: []byte(strings.Replace(named("a.b"), "MUST", "MIGHT", 1) + "---\nx: y\n")},
		"a/a.yaml": {Data: []byte("- 1")},
	}
	_, err := Load(LoadOptions{FS: fsys}, "a/b.yaml", "a/a.yaml", "c")
	var positions []Error
	for _, one := range Errors(err) {
		positions = append(positions, Error{File: one.File, Line: one.Line, Column: one.Column})
	}
	want := []Error{{File: "c"}, {File: "a/b.yaml", Line: 5, Column: 10}, {File: "a/b.yaml", Line: 11, Column: 1}, {File: "a/a.yaml", Line: 1, Column: 1}}
	if diff := cmp.Diff(want, positions); diff != "" {
		t.Errorf("positions (-want +got)\n%s\n%v", diff, err)
	}
	var first *Error
	if !errors.As(err, &first) || first.File != "c" {
		t.Errorf("errors.As found %v", first)
	}
	if got := Errors(errors.New("another")); got != nil {
		t.Errorf("errors of another kind: %v", got)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
}
