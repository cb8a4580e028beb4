package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// In GitHub Actions, a run annotates the lines of scenarios in the repository, and
// adds to the summary of the job. Nothing that a server says is a command.
func TestGitHub(t *testing.T) {
	repository := write(t, map[string]string{"in/a.yaml": scenarioFile("mine.a", "MUST", "hostile"), "in/b.yaml": scenarioFile("mine.b", "SHOULD", "refused"), "summary": "before\n"})
	outside := write(t, map[string]string{"out/c.yaml": scenarioFile("other.c", "MUST", "refused")})
	t.Chdir(filepath.Join(repository, "in"))
	run := func(env []string, args ...string) (result, string) {
		t.Helper()
		var stdout, stderr safe
		summary := filepath.Join(repository, "summary")
		if err := os.WriteFile(summary, []byte("before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		env = append(env, "GITHUB_WORKSPACE="+repository, "GITHUB_STEP_SUMMARY="+summary)
		a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Env: env}, catalogue: fixture(), provider: &fake{}}
		code := a.main(t.Context(), append([]string{"run", "a.yaml", "./b.yaml", outside}, args...))
		written, err := os.ReadFile(summary)
		if err != nil {
			t.Fatal(err)
		}
		got := result{code, stdout.String(), stderr.String()}
		got.check(t, exitFail)
		return got, string(written)
	}
	form := regexp.MustCompile(`(?m)^::[^\r\n]*`)
	in := []string{"GITHUB_ACTIONS=true"}
	for name, test := range map[string]struct{ env, args []string }{"in GitHub Actions": {env: in}, "JSON": {env: in, args: []string{"-o", "json"}}} {
		t.Run(name, func(t *testing.T) {
			got, summary := run(test.env, test.args...)
			commands := form.FindAllString(strings.ReplaceAll(got.stderr, "\r", "\n"), -1)
			want := []string{"::error file=in/a.yaml,line=12,title=fail mine.a MUST::", "::error title=fail other.c MUST::", "::warning file=in/b.yaml,line=12,title=fail mine.b SHOULD::"}
			if len(commands) != len(want) {
				t.Fatalf("got the commands %q, want %d", commands, len(want))
			}
			for i, command := range commands {
				if !strings.HasPrefix(command, want[i]) {
					t.Errorf("got %q, want it to begin with %q", command, want[i])
				}
			}
			if commands := form.FindAllString(got.stdout, -1); len(commands) > 0 {
				t.Errorf("standard output has the commands %q", commands)
			}
			if !strings.HasPrefix(summary, "before\n## admissiontest: FAIL\n") || !strings.Contains(summary, "### fail ` mine.a `") {
				t.Errorf("the summary is\n%s", summary)
			}
		})
	}
	for name, test := range map[string]struct{ env, args []string }{"outside": {}, "turned off": {env: []string{"GITHUB_ACTIONS=false"}}} {
		t.Run(name, func(t *testing.T) {
			got, summary := run(test.env, test.args...)
			if commands := form.FindAllString(got.stderr, -1); len(commands) > 0 || summary != "before\n" {
				t.Errorf("got the commands %q and the summary %q", commands, summary)
			}
		})
	}
}

// A summary that cannot be written is a line, and does not change the exit code.
func TestGitHubSummaryThatCannotBeWritten(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": scenarioFile("mine.a", "MUST", "fine")})
	var stdout, stderr safe
	a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Env: []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + dir}}, catalogue: fixture(), provider: &fake{}}
	code := a.main(t.Context(), []string{"run", dir})
	result{code, stdout.String(), stderr.String()}.check(t, exitPass, "write job summary: open ")
}
