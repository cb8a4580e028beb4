package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/golden"
)

func TestHelp(t *testing.T) {
	for _, command := range []string{"", "run", "list", "explain", "assets", "assets list", "assets path", "assets build", "cleanup", "contract", "image", "rbac", "report", "report html", "report diff", "report merge", "review", "schema", "serve", "version"} {
		args := strings.Fields(command)
		name := strings.Join(append([]string{"help"}, args...), "-")
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append(args, "--help")...)
			got.check(t, exitPass)
			golden.Compare(t, filepath.Join("testdata", filepath.Join("help", name)+".golden"), got.stdout)
			if again := execute(t.Context(), nil, append([]string{"help"}, args...)...); again.stdout != got.stdout || again.code != exitPass {
				t.Errorf("help %s differs from --help, or ends with %d:\n%s", command, again.code, again.stdout)
			}
		})
	}
	golden.Whole(t, filepath.Join("testdata", "help", "*.golden"))
	bare := execute(t.Context(), nil)
	bare.check(t, exitPass)
	if !strings.Contains(bare.stdout, "Available Commands:") {
		t.Errorf("without arguments, the command prints no help:\n%s", bare.stdout)
	}
}

// Each flag of run is in one group of its help, and there are no others.
func TestFlagGroups(t *testing.T) {
	var got, want []string
	for _, group := range flagGroups() {
		got = append(got, group.names...)
	}
	(&app{}).runCommand().Flags().VisitAll(func(flag *pflag.Flag) { want = append(want, flag.Name) })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the groups have %v\nwant %v", got, want)
	}
}

func TestList(t *testing.T) {
	own := packageDir(t)
	dir := write(t, map[string]string{"mine/one.yaml": scenarioFile("mine.one", "MUST", "fine")})
	t.Chdir(dir)
	for name, args := range map[string][]string{
		"list":       nil,
		"list-wide":  {"--wide", "order.by-name", "wire"},
		"list-json":  {"-o", "json", "order.*"},
		"list-files": {"mine", "wire"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"list"}, args...)...)
			got.check(t, exitPass)
			t.Chdir(own)
			golden.Compare(t, filepath.Join("testdata", name+".golden"), got.stdout)
			t.Chdir(dir)
		})
	}
}

// packageDir is the folder of this package, if the test has not changed the working directory.
func packageDir(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A name of the catalogue takes precedence over a file of that name.
func TestNameBeforeFile(t *testing.T) {
	t.Chdir(write(t, map[string]string{"order/one.yaml": scenarioFile("mine.one", "MUST", "fine")}))
	if got := execute(t.Context(), nil, "list", "order"); !strings.Contains(got.stdout, "order.by-name") {
		t.Errorf("list order:\n%s", got.stdout)
	}
	if got := execute(t.Context(), nil, "list", "./order"); !strings.Contains(got.stdout, "mine.one") || strings.Contains(got.stdout, "order.by-name") {
		t.Errorf("list ./order:\n%s", got.stdout)
	}
}

func TestExplain(t *testing.T) {
	got := execute(t.Context(), nil, "explain", "order.by-name", "wire")
	got.check(t, exitPass)
	golden.Compare(t, filepath.Join("testdata", "explain"+".golden"), got.stdout)

	several := scenarioFile("mine.one", "MUST", "one") + "---\n" + scenarioFile("mine.two", "MAY", "two") + "---\n" + scenarioFile("mine.three", "MAY", "three")
	got = execute(t.Context(), nil, "explain", write(t, map[string]string{"several.yaml": several})+"/several.yaml")
	got.check(t, exitPass)
	if strings.Count(got.stdout, "when:") != 3 || strings.Contains(got.stdout, "---") || strings.Count(got.stdout, "kind: Scenario") != 3 {
		t.Errorf("explain of several documents:\n%s", got.stdout)
	}
}

func TestVersion(t *testing.T) {
	got := execute(t.Context(), nil, "version", "-o", "json")
	got.check(t, exitPass)
	var info map[string]string
	if err := json.Unmarshal([]byte(got.stdout), &info); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"version", "goVersion", "platform", "kubernetes"} {
		if info[key] == "" {
			t.Errorf("version -o json has no %s: %v", key, info)
		}
	}
	got = execute(t.Context(), nil, "version")
	got.check(t, exitPass)
	if !strings.HasPrefix(got.stdout, "admissiontest ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("version = %q", got.stdout)
	}
}

func TestSchema(t *testing.T) {
	got := execute(t.Context(), nil, "schema")
	got.check(t, exitPass)
	var schema map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &schema); err != nil || schema["$defs"] == nil {
		t.Errorf("got %v, want a JSON Schema with $defs: %v", schema, err)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		t.Run(shell, func(t *testing.T) {
			got := execute(t.Context(), nil, "completion", shell)
			got.check(t, exitPass)
			if !strings.Contains(got.stdout, "admissiontest") {
				t.Errorf("completion %s is empty", shell)
			}
		})
	}
	got := execute(t.Context(), nil, "__complete", "clean")
	if got.check(t, exitPass); !strings.HasPrefix(got.stdout, "cleanup\tRemove") {
		t.Errorf("completion of clean:\n%s", got.stdout)
	}
}

// The real catalogue loads.
func TestCatalogue(t *testing.T) {
	got := onCatalogue(t.Context(), "list", "-o", "json")
	got.check(t, exitPass)
	var list struct{ Items []struct{ Name string } }
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Items) == 0 {
		t.Errorf("the catalogue is empty: %v", err)
	}
}

// A POSIX shell reads the command line of rerun as the same arguments.
func TestRerunIsQuoted(t *testing.T) {
	one := scenario.Scenario{Metadata: scenario.Metadata{Name: "mine.one"}, File: "a b/it's $(id) ~.yaml"}
	command := &cobra.Command{}
	f := &runFlags{set: command.Flags(), selection: selectionFlags{fromFiles: map[string]bool{"mine.one": true}}}
	f.target.add(command)
	f.endpoints.add(command)
	if err := command.ParseFlags([]string{"--kubeconfig", "~/k", "--context", "a'b", "--endpoint", "a/b=https://h"}); err != nil {
		t.Fatal(err)
	}
	line := f.rerun(one)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+line).CombinedOutput()
	want := "admissiontest\nrun\na b/it's $(id) ~.yaml\n--kubeconfig\n~/k\n--context\na'b\n--endpoint\na/b=https://h\n"
	if err != nil || string(out) != want {
		t.Errorf("rerun = %s; a shell reads it as\n%swant\n%s%v", line, out, want, err)
	}
}

func TestEnvironment(t *testing.T) {
	a := &app{Process: Process{Env: []string{"TERM=a", "NO_COLOR=", "TERM=b"}}}
	if a.env("TERM") != "b" || a.env("HOME") != "" {
		t.Errorf("TERM = %q, HOME = %q", a.env("TERM"), a.env("HOME"))
	}
	if a.color(&strings.Builder{}) {
		t.Error("color = true for a Builder")
	}
}
