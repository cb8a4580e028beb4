package cli

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/report"
)

// The command of rerun selects exactly the scenario that failed, whatever its file is called.
func TestRerunSelectsOne(t *testing.T) {
	for file, argument := range map[string]string{
		"table.yaml": "table.yaml", "-table.yaml": ".", "it's a $(table).yaml": ".", "sub dir/table.yaml": "sub dir", "order": "./order",
	} {
		t.Run(file, func(t *testing.T) {
			dir := write(t, map[string]string{file: scenarioFile("owner.good-one", "MUST", "fine") + "---\n" + scenarioFile("owner.bad-one", "MUST", "refused")})
			t.Chdir(dir)
			got := execute(t.Context(), &fake{}, "run", argument, "-o", "json")
			got.check(t, exitFail)
			var r report.Report
			if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(r.Outcomes, func(o report.Outcome) bool { return o.Name == "owner.bad-one" })
			out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\0' "+r.Outcomes[at].Rerun).Output()
			if err != nil {
				t.Fatal(err)
			}
			args := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			again := execute(t.Context(), &fake{}, args[1:]...)
			again.check(t, exitFail)
			if !strings.Contains(again.stdout, "fail  owner.bad-one") || !strings.Contains(again.stdout, "1 scenario: 0 pass, 1 fail") {
				t.Errorf("%s runs other scenarios:\n%s", r.Outcomes[at].Rerun, again.stdout)
			}
		})
	}
}

// A run whose scenarios all have their own servers reports when the first of them was ready.
func TestTimesOfOwnServers(t *testing.T) {
	own := strings.Replace(scenarioFile("mine.own", "MUST", "fine"), "  level:", "  server: {flags: {v: \"1\"}}\n  level:", 1)
	got := execute(t.Context(), &fake{}, "run", filepath.Join(write(t, map[string]string{"a.yaml": own}), "a.yaml"), "-o", "json")
	got.check(t, exitPass)
	var r report.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || r.Timing.TargetReady <= 0 || r.Timing.Catalogue <= 0 {
		t.Errorf("timing: %+v, %v; want the times of the server with custom flags", r.Timing, err)
	}
}

// The reader of the output can end early, as head does: this is no error, and the exit code of a run
// is that of its outcomes.
func TestClosedPipe(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"list"}, exitPass},
		{[]string{"list", "-o", "json"}, exitPass},
		{[]string{"explain", "order.by-name"}, exitPass},
		{[]string{"schema"}, exitPass},
		{[]string{"version"}, exitPass},
		{[]string{"--version"}, exitPass},
		{[]string{"--help"}, exitPass},
		{[]string{"run"}, exitPass},
		{[]string{"run", "-v", "--strict=unsupported", "-o", "json"}, exitPass},
		{[]string{"run", "--only", "none"}, exitUsage},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := reader.Close(); err != nil {
				t.Fatal(err)
			}
			a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: writer, Stderr: writer}, catalogue: fixture(), provider: &fake{}}
			if code := a.main(t.Context(), test.args); code != test.code {
				t.Errorf("%v: exit code %d; want %d", test.args, code, test.code)
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	fails := filepath.Join(write(t, map[string]string{"a.yaml": scenarioFile("mine.refused", "MUST", "refused")}), "a.yaml")
	var stderr safe
	reader, writer := io.Pipe()
	_ = reader.Close()
	a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: writer, Stderr: &stderr}, catalogue: fixture(), provider: &fake{}}
	if code := a.main(t.Context(), []string{"run", fails}); code != exitFail || strings.Contains(stderr.String(), "closed pipe") {
		t.Errorf("run: exit code %d; want %d\n%s", code, exitFail, stderr.String())
	}
}
