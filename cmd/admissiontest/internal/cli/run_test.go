package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// fake is a provider, a target and a sandbox that answers by the name of the object.
type fake struct {
	targettest.Target
	targettest.Sandbox
	// cancel is called by a request for the object "interrupt".
	cancel func()
	// startErr and waitErr are returned by Start and WaitUntilEffective.
	startErr, waitErr error
	closed            bool
	// atEnd is called by Close. Nil does nothing.
	atEnd func()
	// installed is what InstallForRun was called with; it returns installErr.
	installed  []map[string]any
	installErr error
	// version is the version of the server. Empty means v1.36.3.
	version string
	dead    bool
}

func (*fake) Check(context.Context) error             { return nil }
func (*fake) Version(context.Context) (string, error) { return "", nil }

func (f *fake) Start(context.Context, target.StartOptions) (target.Target, error) {
	return f, f.startErr
}

func (f *fake) Info() framework.TargetInfo {
	return framework.TargetInfo{Kind: framework.TargetEnvtest, ServerVersion: cmp.Or(f.version, "v1.36.3")}
}

func (f *fake) InstallForRun(_ context.Context, manifests []map[string]any) error {
	f.installed = manifests
	return f.installErr
}

func (f *fake) WaitUntilEffective(context.Context, []map[string]any) error { return f.waitErr }
func (f *fake) Close(context.Context) error {
	f.closed = true
	if f.atEnd != nil {
		f.atEnd()
	}
	return nil
}

func (f *fake) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	return f, nil
}

func (f *fake) Alive(context.Context) error {
	if f.dead {
		return fmt.Errorf("ask for the version: %w", framework.ErrNoResponse)
	}
	return nil
}

func (f *fake) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	var got framework.Result
	got.Status.Code = 201
	switch name := request.Name; name {
	case "refused":
		got.Status.Code, got.Status.Message = 403, "no"
	case "hostile":
		got.Status.Code, got.Status.Message = 403, "no\n::error::x\r::error::y ##[error]z"
	case "lost":
		f.dead = true
		return framework.Result{}, fmt.Errorf("send: %w", framework.ErrNoResponse)
	case "undecided":
		return framework.Result{}, fmt.Errorf("wait: %w", framework.ErrTimeout)
	case "broken":
		return framework.Result{}, errors.New("broken")
	case "interrupt":
		f.cancel()
		<-ctx.Done()
		return framework.Result{}, ctx.Err()
	}
	return got, nil
}

// All exit codes that depend on outcomes.
func TestRunExitCodes(t *testing.T) {
	tests := map[string]struct {
		scenarios [][2]string // level, object
		args      []string
		target    fake
		code      int
	}{
		"all pass":                     {[][2]string{{"MUST", "fine"}, {"SHOULD", "fine"}}, nil, fake{}, exitPass},
		"a MUST fails":                 {[][2]string{{"MUST", "refused"}, {"MUST", "fine"}}, nil, fake{}, exitFail},
		"a SHOULD fails":               {[][2]string{{"SHOULD", "refused"}, {"MUST", "fine"}}, nil, fake{}, exitPass},
		"a SHOULD fails, strictly":     {[][2]string{{"SHOULD", "refused"}, {"MUST", "fine"}}, []string{"--strict"}, fake{}, exitFail},
		"a MAY fails, strictly":        {[][2]string{{"MAY", "refused"}, {"MUST", "fine"}}, []string{"--strict"}, fake{}, exitPass},
		"nothing passes":               {[][2]string{{"MAY", "refused"}}, []string{"--strict"}, fake{}, exitNothing},
		"all are skipped":              {[][2]string{{"MUST", "fine"}}, []string{"--skip", "mine.s0"}, fake{}, exitNothing},
		"all are unsupported":          {[][2]string{{"MUST", "fine"}}, nil, fake{version: "v1.18.3"}, exitInconclusive},
		"a fake version":               {[][2]string{{"MUST", "fine"}}, nil, fake{version: "v1.99.0"}, exitInconclusive},
		"a version that is not one":    {[][2]string{{"SHOULD", "fine"}}, nil, fake{version: "fake"}, exitInconclusive},
		"what fails is skipped":        {[][2]string{{"MUST", "refused"}, {"MUST", "fine"}}, []string{"--skip", "mine.s0"}, fake{}, exitPass},
		"error":                        {[][2]string{{"MUST", "broken"}, {"MUST", "fine"}}, nil, fake{}, exitInfrastructure},
		"inconclusive":                 {[][2]string{{"MUST", "undecided"}, {"MUST", "fine"}}, nil, fake{}, exitInconclusive},
		"the fence times out":          {[][2]string{{"MUST", "fine"}}, nil, fake{waitErr: fmt.Errorf("fence: %w", framework.ErrTimeout)}, exitInconclusive},
		"the server dies":              {[][2]string{{"MUST", "lost"}, {"MUST", "fine"}}, nil, fake{}, exitInfrastructure},
		"the server dies, all are MAY": {[][2]string{{"MAY", "lost"}}, nil, fake{}, exitInfrastructure},
		"no server":                    {[][2]string{{"MUST", "fine"}}, nil, fake{startErr: errors.New("no server")}, exitInfrastructure},
		"interrupted":                  {[][2]string{{"MUST", "interrupt"}, {"MUST", "fine"}}, nil, fake{}, exitInterrupted},
		"interrupted, all are MAY":     {[][2]string{{"MAY", "interrupt"}}, nil, fake{}, exitInterrupted},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for i, one := range test.scenarios {
				files[fmt.Sprintf("%d.yaml", i)] = scenarioFile(fmt.Sprintf("mine.s%d", i), one[0], one[1])
			}
			dir := write(t, files)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			test.target.cancel = cancel
			args := append([]string{"run", dir, "-o", "json", "--report", dir + "/out", "--parallel", "1"}, test.args...)
			got := execute(ctx, &test.target, args...)
			got.check(t, test.code)
			r := checkReport(t, got, dir+"/out")
			if incomplete := r.Incomplete != ""; incomplete != (test.target.dead || test.target.startErr != nil || test.code == exitInterrupted) {
				t.Errorf("incomplete = %q", r.Incomplete)
			}
			if r.Interrupted != (test.code == exitInterrupted) {
				t.Errorf("interrupted = %t", r.Interrupted)
			}
			if !test.target.closed && test.target.startErr == nil {
				t.Error("the target was not closed")
			}
		})
	}
}

// checkReport decodes the report on standard output. It checks that the report in the
// folder is the same and that the totals sum.
func checkReport(t *testing.T, got result, dir string) report.Report {
	t.Helper()
	var r report.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("standard output is not one JSON document: %v\n%s", err, got.stdout)
	}
	saved, err := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if err != nil || string(saved) != got.stdout {
		t.Errorf("%s differs from standard output: %v", report.JSONFile, err)
	}
	if _, err := os.Stat(filepath.Join(dir, report.JUnitFile)); err != nil {
		t.Error(err)
	}
	if r.Summary != report.Count(r.Outcomes) || r.Summary.Total == 0 {
		t.Errorf("summary %+v of %d outcomes", r.Summary, len(r.Outcomes))
	}
	return r
}

// --fail-fast ends the run when a scenario fails it, and only then. The request of mine.waits has no answer
// before the run ends.
func TestFailFast(t *testing.T) {
	dir := write(t, map[string]string{
		"must.yaml":   scenarioFile("mine.must", "MUST", "refused"),
		"should.yaml": scenarioFile("mine.should", "SHOULD", "refused"),
		"waits.yaml":  scenarioFile("mine.waits", "MUST", "interrupt"),
		"fine.yaml":   scenarioFile("mine.fine", "MUST", "fine"),
	})
	for _, test := range []struct {
		args  []string
		code  int
		ended bool
	}{
		{[]string{"fine.yaml", "should.yaml"}, exitPass, false},
		{[]string{"waits.yaml", "must.yaml"}, exitFail, true},
		{[]string{"waits.yaml", "should.yaml", "--strict"}, exitFail, true},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			args := []string{"run", "-o", "json", "--fail-fast", "--report", dir + "/out"}
			for _, arg := range test.args {
				if strings.HasSuffix(arg, ".yaml") {
					arg = filepath.Join(dir, arg)
				}
				args = append(args, arg)
			}
			got := execute(t.Context(), &fake{cancel: func() {}}, args...)
			got.check(t, test.code)
			r := checkReport(t, got, dir+"/out")
			if ended := r.Incomplete == engine.ErrFailFast.Error(); ended != test.ended || r.Interrupted || ended != (r.Summary.Skipped == 1) {
				t.Errorf("%v: incomplete: %q, interrupted %t, %+v", test.args, r.Incomplete, r.Interrupted, r.Summary)
			}
		})
	}
}

func TestRunOnTheConsole(t *testing.T) {
	dir := write(t, map[string]string{
		"a.yaml": scenarioFile("mine.fine", "MUST", "fine"),
		"b.yaml": scenarioFile("mine.refused", "MUST", "refused"),
	})
	t.Chdir(dir)
	got := execute(t.Context(), &fake{}, "run", "./", "order", "--context", "a b")
	got.check(t, exitFail, "fail  mine.refused  MUST: step 1", "4 of 4 done, 1 failed or not judged\n", "starting the API server")
	for _, part := range []string{
		"fail  mine.refused  MUST\n", "requirement  The requirement of mine.refused.", "source       https://example.com/mine.refused",
		"rerun        admissiontest run b.yaml --context 'a b'\n", "4 scenarios: 3 pass, 1 fail", ": FAIL\n",
	} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("standard output lacks %q:\n%s", part, got.stdout)
		}
	}
	if strings.Contains(got.stdout, "\x1b") {
		t.Error("standard output has colours, but it is not a terminal")
	}
	got = execute(t.Context(), &fake{}, "run", "-v", "--skip", "wire")
	got.check(t, exitPass)
	if !strings.Contains(got.stdout, "wire.tls-version: by --skip wire") {
		t.Errorf("standard output lacks the reason of the skip:\n%s", got.stdout)
	}
}

// Without a target, standard output is empty.
func TestRunWithoutTarget(t *testing.T) {
	got := execute(t.Context(), &fake{startErr: errors.Join(errors.New("one"), errors.New("two"))}, "run")
	got.check(t, exitInfrastructure, "admissiontest: run scenarios: one\n  two\n")
	if got.stdout != "" {
		t.Errorf("standard output = %q", got.stdout)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got = execute(ctx, &fake{startErr: context.Canceled}, "run")
	got.check(t, exitInterrupted, "admissiontest: interrupted\n")
}

func TestReportThatCannotBeWritten(t *testing.T) {
	dir := write(t, map[string]string{"out/report.json/x": ""})
	got := execute(t.Context(), &fake{}, "run", "order", "--report", dir+"/out")
	got.check(t, exitInfrastructure, "save report", "report.json")
}

// If nothing could be judged, the run is not green, and the last line says so.
func TestRunWithoutAPass(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": strings.Replace(scenarioFile("mine.a", "MUST", "fine"), "1.20", "1.37", 1)})
	got := execute(t.Context(), &fake{}, "run", dir)
	got.check(t, exitNothing)
	if !strings.Contains(got.stdout, ": NOTHING JUDGED\n") {
		t.Errorf("standard output:\n%s", got.stdout)
	}
	execute(t.Context(), &fake{}, "run", dir, "-o", "json").check(t, exitNothing, "nothing could be judged: 1 unsupported")
	got = execute(t.Context(), &fake{version: "v1.99.0"}, "run", dir)
	got.check(t, exitInconclusive)
	if !strings.Contains(got.stdout, `the server reports the version "v1.99.0"`) || !strings.Contains(got.stdout, ": INCONCLUSIVE\n") {
		t.Errorf("standard output:\n%s", got.stdout)
	}
}

// Nothing that a server says is a command of GitHub Actions, on any output.
func TestRunPrintsNoCommands(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": scenarioFile("mine.a", "MUST", "hostile")})
	start := errors.New("no server\n::error::start")
	for _, got := range []result{
		execute(t.Context(), &fake{}, "run", "-v", dir),
		execute(t.Context(), &fake{}, "run", "-o", "json", dir),
		execute(t.Context(), &fake{startErr: start}, "run", dir),
	} {
		for _, text := range []string{got.stdout, got.stderr} {
			if strings.Contains(text, "##[") {
				t.Errorf("got ##[ in\n%s", text)
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "::") {
					t.Errorf("got the command %q", line)
				}
			}
		}
	}
}
