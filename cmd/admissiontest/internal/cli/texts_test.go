package cli

import (
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
	for _, command := range []string{"", "run", "list", "explain", "assets", "assets list", "assets path", "assets build", "cleanup", "contract", "image", "rbac", "report", "report html", "report diff", "report merge", "review", "schema", "serve", "version", "wait"} {
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
