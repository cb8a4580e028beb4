package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what is looked at of a workflow or a composite action.
type workflow struct {
	Inputs map[string]struct {
		Description string
		Default     *string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []step
	}
	Jobs map[string]struct {
		RunsOn         string `json:"runs-on"`
		TimeoutMinutes int    `json:"timeout-minutes"`
		Steps          []step
	}
	Permissions map[string]string
}

type step struct {
	Name, Uses, Run, Shell, If string
	With                       map[string]any
	Env                        map[string]string
}

// steps are the steps of all jobs.
func (w workflow) steps() []step {
	all := slices.Clone(w.Runs.Steps)
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		all = append(all, w.Jobs[name].Steps...)
	}
	return all
}

const ourAction = "./.github/actions/admissiontest"

// faults says what is wrong with a workflow, by which action ours is known.
func faults(text string, action workflow) []string {
	var w workflow
	if err := yaml.UnmarshalStrict([]byte(text), &map[string]any{}); err != nil {
		return []string{err.Error()}
	}
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, match := range regexp.MustCompile(`\binputs\.([a-zA-Z_-]+)`).FindAllStringSubmatch(text, -1) {
		if _, declared := w.Inputs[match[1]]; !declared {
			found = append(found, "uses input "+match[1]+", which is not declared")
		}
	}
	for name := range w.Inputs {
		if !strings.Contains(text, "inputs."+name) {
			found = append(found, "declares input "+name+", which nothing uses")
		}
	}
	for i, one := range w.steps() {
		where := fmt.Sprintf("step %d ", i+1)
		switch {
		case (one.Uses == "") == (one.Run == ""):
			found = append(found, where+"has not one of uses and run")
		case strings.HasPrefix(one.Uses, "./"):
			for name := range one.With {
				if _, declared := action.Inputs[name]; one.Uses == ourAction && !declared {
					found = append(found, where+"gives input "+name+", which the action has not")
				}
			}
		case one.Uses != "" && !regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`).MatchString(one.Uses):
			found = append(found, where+"uses "+one.Uses+", which is not pinned by a full commit SHA")
		case one.Uses != "" && !regexp.MustCompile(regexp.QuoteMeta(one.Uses)+` # v\d+\.\d+\.\d+\n`).MatchString(text):
			found = append(found, where+"uses "+one.Uses+" without its version in a comment")
		}
		if w.Runs.Using == "composite" && one.Run != "" && one.Shell == "" {
			found = append(found, where+"has no shell, which a composite action needs")
		}
		if strings.Contains(one.Run, "${{") {
			found = append(found, where+"has an expression in its script, where it could inject commands: use env")
		}
	}
	for name, job := range w.Jobs {
		if job.RunsOn == "" || job.TimeoutMinutes == 0 || len(job.Steps) == 0 {
			found = append(found, "job "+name+" lacks runs-on, timeout-minutes or steps")
		}
	}
	if len(w.Jobs) > 0 && w.Permissions["contents"] != "read" {
		found = append(found, "permissions are not set to what it needs")
	}
	slices.Sort(found)
	return found
}

func readAction(t *testing.T) workflow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", ".github", "actions", "admissiontest", "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action workflow
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	if len(action.Inputs) == 0 || len(action.Runs.Steps) == 0 {
		t.Fatal("the action has no inputs or no steps")
	}
	return action
}

// An action has the same version everywhere, and a version has one commit.
func TestWorkflows(t *testing.T) {
	action := readAction(t)
	files, err := filepath.Glob(filepath.Join("..", ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("found workflows %q, %v; want ci.yml, conformance.yml and release.yml", files, err)
	}
	pins := map[string]string{}
	for _, file := range append(files, filepath.Join("..", ".github", "actions", "admissiontest", "action.yml")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults(string(text), action) {
			t.Errorf("%s %s", filepath.Base(file), fault)
		}
		for _, match := range regexp.MustCompile(`uses: ([\w./-]+)@(\w+ # \S+)`).FindAllStringSubmatch(string(text), -1) {
			if old, known := pins[match[1]]; known && old != match[2] {
				t.Errorf("%s has %s@%s; another file has %s", filepath.Base(file), match[1], match[2], old)
			}
			pins[match[1]] = match[2]
		}
	}
	if len(pins) < 5 {
		t.Errorf("found %d actions; want checkout, setup-go, cache, upload-artifact, attest-build-provenance", len(pins))
	}
}

// The manual of the action has its inputs with their defaults, and no others.
func TestActionManual(t *testing.T) {
	action := readAction(t)
	text, err := os.ReadFile(filepath.Join("..", ".github", "actions", "admissiontest", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|.*\\| (?:`([^`]*)` )?\\|$").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	for name, input := range action.Inputs {
		if def, ok := documented[name]; !ok || input.Default == nil || def != *input.Default || input.Description == "" {
			t.Errorf("input %s: README.md has default %q (%t); want what action.yml has, with a description", name, def, ok)
		}
		delete(documented, name)
	}
	if len(documented) > 0 {
		t.Errorf("README.md has inputs %v, which the action does not have", documented)
	}
}

// TestFaultsAreFound is the must-fail fixture of TestWorkflows.
func TestFaultsAreFound(t *testing.T) {
	action := readAction(t)
	job := "permissions: {contents: read}\njobs: {a: {runs-on: x, timeout-minutes: 1, steps: [%s]}}\n"
	for text, want := range map[string]string{
		"a: b\na: c\n": "already set",
		fmt.Sprintf(job, "{uses: ./.github/actions/admissiontest, with: {targt: kind}}"):                               "gives input targt",
		fmt.Sprintf(job, "{uses: actions/checkout@main}"):                                                              "not pinned by a full commit SHA",
		fmt.Sprintf(job, "{uses: actions/checkout@v5.1.0}"):                                                            "not pinned by a full commit SHA",
		fmt.Sprintf(job, "{uses: actions/checkout@"+strings.Repeat("a", 40)+"}"):                                       "without its version in a comment",
		fmt.Sprintf(job, "{uses: a/b@v1, run: make}"):                                                                  "not one of uses and run",
		fmt.Sprintf(job, "{run: 'echo ${{ github.head_ref }}'}"):                                                       "inject commands",
		fmt.Sprintf(job, "{run: make, env: {A: '${{ inputs.none }}'}}"):                                                "uses input none",
		"inputs: {a: {description: b}}\nruns: {using: composite, steps: [{run: make, shell: bash}]}\n":                 "declares input a",
		"inputs: {a: {description: b}}\nruns: {using: composite, steps: [{run: make, env: {A: '${{ inputs.a }}'}}]}\n": "has no shell",
		"permissions: {contents: read}\njobs: {a: {runs-on: x, steps: [{run: make}]}}\n":                               "lacks runs-on, timeout-minutes",
		"jobs: {a: {runs-on: x, timeout-minutes: 1, steps: [{run: make}]}}\n":                                          "permissions",
	} {
		t.Run(text, func(t *testing.T) {
			if got := faults(text, action); len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("found %q, want one with %q", got, want)
			}
		})
	}
}
