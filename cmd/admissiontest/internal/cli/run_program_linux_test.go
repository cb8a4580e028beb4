package cli

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// labelledByProgram is a scenario for the program in testdata/webhook.
const labelledByProgram = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.label}
spec:
  level: MUST
  requirement: ConfigMaps get the label of the webhook.
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: guard}
      webhooks:
        - name: guard.example.com
          clientConfig: {service: {namespace: guard-system, name: guard, path: /mutate}}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
      then:
        object: {metadata: {labels: {by: guard}}}
        calls: [{webhook: guard.example.com, response: {patch: [{op: add, path: /metadata/labels}]}}]
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: second}}
`

// webhookProgram is the program in testdata/webhook with its scenario.
type webhookProgram struct {
	path, dir, address string
	endpoint           []string // flags
}

func buildWebhook(t *testing.T) webhookProgram {
	t.Helper()
	dir := t.TempDir()
	w := webhookProgram{path: filepath.Join(dir, "webhook"), dir: dir, address: freeAddress(t)}
	w.endpoint = []string{"--endpoint", "guard-system/guard=https://" + w.address}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", w.path, "./testdata/webhook").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	w.writeScenario(t, labelledByProgram)
	return w
}

func (w webhookProgram) writeScenario(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "scenario.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address that nothing listens on. Its port is below those that Linux gives to connections and to
// listeners at port 0, so that nothing else gets it before the program starts.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("100 ports of 127.0.0.1 are in use")
	return ""
}

// run returns a process that runs the scenario with the program, and its output. Its TMPDIR is the
// returned folder.
func (w webhookProgram) run(t *testing.T, flags []string, arguments ...string) (*exec.Cmd, *bytes.Buffer, string) {
	t.Helper()
	args := slices.Concat([]string{"run", filepath.Join(w.dir, "scenario.yaml")}, w.endpoint, flags, []string{"--", w.path, "--address", w.address, "--certs={cert-dir}"})
	process, said := command(context.WithoutCancel(t.Context()), append(args, arguments...)...)
	temporary, err := os.MkdirTemp("", "at") //nolint:usetesting // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	process.Env = append(process.Env, "TMPDIR="+temporary)
	return process, said, temporary
}

// wantNoProcess waits until no process has a string in its command line or environment, and until a
// folder is empty.
func wantNoProcess(t *testing.T, text, folder string) {
	t.Helper()
	var found []string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		found = nil
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return false, err
		}
		for _, file := range files {
			line, _ := os.ReadFile(file) // empty if the process has ended
			environ, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
			if bytes.Contains(line, []byte(text)) || bytes.Contains(environ, []byte(folder)) {
				found = append(found, string(line))
			}
		}
		left, err := os.ReadDir(folder)
		for _, one := range left {
			found = append(found, one.Name())
		}
		return len(found) == 0, err
	})
	if err != nil {
		t.Errorf("left: %q: %v", found, err)
	}
}

// A program that serves the webhook under test runs beside the scenarios, and broken ones are found
// out. Nothing is left.
func TestProgram(t *testing.T) {
	if _, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }}); err != nil {
		t.Fatal(err)
	}
	w := buildWebhook(t)
	report := t.TempDir()
	for name, test := range map[string]struct {
		flags, arguments []string
		code             int
		says             []string
		not              []string
	}{
		"honest": {[]string{"--report", report}, nil, exitPass, []string{"1 pass", "starting " + w.path}, []string{"last output of"}},
		"lies": {nil, []string{"--label", "other"}, exitFail, []string{
			`object.metadata.labels.by: "other"`, "-- " + w.path, "the last output of " + w.path + ":", "the webhook starts",
		}, nil},
		"ends at once": {nil, []string{"--exit", "7"}, exitInfrastructure, []string{
			w.path + " ended before the run (exit status 7); it must serve until it gets SIGTERM", "flag --token is missing", "Bearer (redacted)", "1 not reached",
		}, []string{"abcdefghij", "context canceled", "does not answer"}},
		"ends well": {nil, []string{"--exit", "0"}, exitInfrastructure, []string{"(exit status 0)"}, nil},
		"crashes in a call": {nil, []string{"--crash-on", "second"}, exitInfrastructure, []string{
			"ended before the run (exit status 2)", "panic: a bug", "0 fail", "1 error",
		}, nil},
		"does not answer": {[]string{"--patience", "1s"}, []string{"--address", "127.0.0.1:0"}, exitInfrastructure, []string{
			"does not answer within", "connection refused", "the last output of " + w.path + ":",
		}, nil},
		"has a child": {nil, []string{"--fork", filepath.Join(t.TempDir(), "child")}, exitPass, []string{"1 pass"}, nil},
		"ignores SIGTERM": {nil, []string{"--ignore-sigterm"}, exitPass, []string{
			"1 pass", w.path + " did not end after SIGTERM and was killed",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			process, said, temporary := w.run(t, test.flags, test.arguments...)
			_ = process.Run() // the exit code is checked
			if code := process.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, part := range test.says {
				if !strings.Contains(said.String(), part) {
					t.Errorf("the output lacks %q", part)
				}
			}
			if slices.ContainsFunc(test.not, func(part string) bool { return strings.Contains(said.String(), part) }) {
				t.Errorf("the output has one of %q", test.not)
			}
			if t.Failed() {
				t.Log(said)
			}
			wantNoProcess(t, w.path, temporary)
		})
	}
	log, err := os.ReadFile(filepath.Join(report, "program.log"))
	if want := fmt.Sprintf("-rw-------: 200 OK, in %s\n", os.Getenv("HOME")); err != nil || !strings.HasPrefix(string(log), "the webhook starts\nKUBECONFIG ") || !strings.HasSuffix(string(log), want) {
		t.Errorf("program.log: %v\n%swant %s", err, log, want)
	}
}

// The run waits for a webhook with a URL too, sees its calls, and gives it a certificate that the API
// server trusts. One that closes connections is running: the calls fail.
func TestProgramByURL(t *testing.T) {
	if _, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }}); err != nil {
		t.Fatal(err)
	}
	w := buildWebhook(t)
	w.endpoint = nil
	byURL := func(path string) string {
		return strings.Replace(labelledByProgram, "service: {namespace: guard-system, name: guard, path: /mutate}", "url: https://"+w.address+path, 1)
	}
	for name, test := range map[string]struct {
		scenario  string
		arguments []string
		code      int
		says      string
	}{
		"late":       {byURL("/mutate"), []string{"--late", "3s"}, exitPass, "1 pass"},
		"not called": {strings.Replace(byURL("/mutate"), "calls: [", "calls: {exclude: [guard.example.com]} # ", 1), nil, exitFail, "no call of guard.example.com"},
		"closes":     {byURL("/panic"), nil, exitFail, `failed calling webhook "guard.example.com"`},
		"is down":    {byURL("/mutate"), []string{"--address", "127.0.0.1:0"}, exitInfrastructure, "connection refused; PROGRAM must serve it; for a webhook that is down, use a fault in hooks"},
	} {
		t.Run(name, func(t *testing.T) {
			w.writeScenario(t, test.scenario)
			process, said, _ := w.run(t, []string{"--patience", "20s"}, test.arguments...)
			_ = process.Run() // the exit code is checked
			if code := process.ProcessState.ExitCode(); code != test.code || !strings.Contains(said.String(), test.says) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, test.code, test.says, said)
			}
		})
	}
}

// A run that is killed leaves neither the program, nor its child, nor its kubeconfig. One that is
// interrupted stops them.
func TestKilledRunLeavesNoProgram(t *testing.T) {
	if _, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }}); err != nil {
		t.Fatal(err)
	}
	w := buildWebhook(t)
	for _, signal := range []os.Signal{os.Kill, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			child := filepath.Join(t.TempDir(), "child")
			// It waits for an endpoint that never answers.
			process, said, temporary := w.run(t, nil, "--address", "127.0.0.1:0", "--fork", child)
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				data, _ := os.ReadFile(child)
				return len(data) > 0, nil
			})
			if err != nil {
				_ = process.Process.Kill()
				_ = process.Wait()
				t.Fatalf("the program started no child:\n%s", said)
			}
			if err := process.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = process.Wait()
			if code := process.ProcessState.ExitCode(); signal == os.Interrupt && code != exitInterrupted {
				t.Errorf("exit code %d, want %d\n%s", code, exitInterrupted, said)
			}
			wantNoProcess(t, w.path, temporary)
		})
	}
}

func TestProgramUsage(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"one.yaml":    labelledByProgram,
		"server.yaml": strings.Replace(strings.Replace(labelledByProgram, "mine.label", "mine.server", 1), "  given:", "  server: {flags: {v: \"1\"}}\n  given:", 1),
	})
	one, server := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "server.yaml")
	for want, args := range map[string][]string{
		"-- without a program; want -- PROGRAM [ARGUMENT ...]":                                          {one, "--"},
		`program "nosuchprogram" is not in PATH; write ./nosuchprogram for one`:                         {one, "--", "nosuchprogram"},
		`program "./none" cannot be run: stat ./none: no such file or directory`:                        {one, "--", "./none", "--strict"},
		"scenario mine.server needs its own API server, but its webhook under test runs in the program": {server, "--", "sh"},
	} {
		t.Run(want, func(t *testing.T) {
			execute(t.Context(), nil, append([]string{"run"}, args...)...).check(t, exitUsage, want)
		})
	}
}
