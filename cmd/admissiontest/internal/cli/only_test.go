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

// ownPolicyTest is a PolicyTest with two cases of which the second gives another object to the fake
// target.
const ownPolicyTest = `apiVersion: admissiontest.dev/v1alpha1
kind: PolicyTest
metadata: {name: owner}
policies:
  - apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingAdmissionPolicy
    metadata: {name: p}
    spec:
      matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
      validations: [{expression: "true"}]
cases:
  - {name: good one, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}, allowed: true}
  - {name: bad one, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: refused}}, allowed: true}
`

// --only selects by name among the scenarios of the arguments, whether they are in files or in the
// catalogue.
func TestOnly(t *testing.T) {
	dir := write(t, map[string]string{
		"own/many.yaml":  scenarioFile("mine.fine", "MUST", "fine") + "---\n" + scenarioFile("mine.other", "SHOULD", "fine"),
		"own/table.yaml": ownPolicyTest,
		"own/area.yaml":  scenarioFile("own.own", "MUST", "fine"),
	})
	t.Chdir(dir)
	for _, test := range []struct {
		args string
		want string
	}{
		{"list own --only mine.fine", "mine.fine"},
		{"list own --only mine.*,owner.bad-one", "mine.fine mine.other owner.bad-one"},
		{"list own --only mine.fine --only owner.good-one", "mine.fine owner.good-one"},
		{"list own order --only *.fine,order.by-name", "mine.fine order.by-name"},
		{"list --only wire", "wire.tls-version"},
		{"list own --only own", "mine.fine mine.other own.own owner.bad-one owner.good-one"},
	} {
		t.Run(test.args, func(t *testing.T) {
			got := execute(t.Context(), nil, strings.Fields(test.args)...)
			got.check(t, exitPass)
			var names []string
			for line := range strings.Lines(got.stdout) {
				names = append(names, strings.Fields(line)[0])
			}
			if names := strings.Join(names[min(1, len(names)):], " "); names != test.want {
				t.Errorf("got %s; want %s", names, test.want)
			}
		})
	}
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"run own --only mine.fien", exitUsage, `--only: select "mine.fien": unknown name: no scenario and no area is called so; did you mean "mine.fine"?`},
		{"run own --only bad-one", exitUsage, "unknown name"},
		{"run own --only order.by-name", exitUsage, "--only: select"}, // not of the selected scenarios
		{"run own --only [", exitUsage, "malformed"},
		{"run own --only x*", exitNothing, "matches none of 5 scenarios"},
		{"run own owner.bad-one", exitUsage, "unknown name"},
	} {
		t.Run(test.args, func(t *testing.T) {
			execute(t.Context(), &fake{}, strings.Fields(test.args)...).check(t, test.code, test.says)
		})
	}
	execute(t.Context(), &fake{}, "run", "own", "--only", "Bad One").check(t, exitUsage, "unknown name")
}

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
		{[]string{"run", "-v", "--fail-on-unsupported", "--strict", "-o", "json"}, exitPass},
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

// The flag --version prints what the command version prints.
func TestVersionFlag(t *testing.T) {
	flag, command := execute(t.Context(), nil, "--version"), execute(t.Context(), nil, "version")
	flag.check(t, exitPass)
	if flag.stdout != command.stdout || !strings.HasPrefix(flag.stdout, "admissiontest ") {
		t.Errorf("--version prints %q, and version %q", flag.stdout, command.stdout)
	}
}
