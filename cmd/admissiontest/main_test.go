package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/report"
)

// beCommand in the environment makes the test binary the command itself.
const beCommand = "ADMISSIONTEST_BE_THE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(beCommand) != "" {
		main()
	}
	_ = flag.Set("test.parallel", "4") // the scripts wait more than they compute; "go test -parallel" is an error for packages with Ginkgo
	os.Exit(testscript.RunMain(m, map[string]func() int{"admissiontest": func() int {
		main()
		return 0
	}}))
}

// command returns the command as a separate process.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), beCommand+"=1")
	return c
}

// outcome runs a command until it ends.
func outcome(c *exec.Cmd) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run()
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// server starts an API server and returns its kubeconfig.
func server(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server")
	}
	binaries, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := envtest.Start(t.Context(), envtest.Options{BinaryAssetsDirectory: binaries.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return file(t, "kubeconfig", string(s.KubeConfig))
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// slow writes a file with two scenarios. The webhook of the first answers after a delay,
// and the scenario expects that the request is allowed or not. The second has no webhook.
func slow(t *testing.T, delay time.Duration, allowed bool) string {
	t.Helper()
	return file(t, "slow.yaml", fmt.Sprintf(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.slow}
spec:
  level: MUST
  requirement: The API server waits for a slow webhook.
  source: ["https://example.com/slow"]
  given:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: given, finalizers: [example.com/held]}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: a}
      webhooks:
        - name: slow.example.com
          timeoutSeconds: 30
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  hooks:
    slow.example.com: {delay: %s}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: subject}}
      then: {allowed: %t, calls: [slow.example.com]}
---
apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.quick}
spec:
  level: MUST
  requirement: An object that was created can be read.
  source: ["https://example.com/quick"]
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: subject}}
    - get: {apiVersion: v1, kind: ConfigMap, name: subject}
`, delay, allowed))
}

// running starts a run and returns when its scenarios begin. The channel has the later
// lines of standard error; the caller need not read them.
func running(t *testing.T, c *exec.Cmd) <-chan string {
	t.Helper()
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	const most = 1000 // more lines than any run here prints
	printed := make(chan string, most)
	go func() {
		defer close(printed)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			printed <- lines.Text()
		}
	}()
	var seen strings.Builder
	for line := range printed {
		if strings.HasPrefix(line, "running ") {
			return printed
		}
		_, _ = fmt.Fprintln(&seen, line)
	}
	t.Fatalf("the run ended early:\n%s", &seen)
	return nil
}

// ended waits until a run ends, and kills it after the limit. It returns the exit code.
func ended(t *testing.T, c *exec.Cmd, limit time.Duration) int {
	t.Helper()
	timer := time.AfterFunc(limit, func() {
		t.Errorf("the command did not end within %s", limit)
		_ = c.Process.Kill()
	})
	defer timer.Stop()
	_ = c.Wait()
	return c.ProcessState.ExitCode()
}

// The command on an existing API server. This is one test, so that it starts one server.
func TestOnACluster(t *testing.T) {
	kubeconfig := server(t)
	run := func(scenario string, more ...string) *exec.Cmd {
		return command(t, append([]string{"run", "--kubeconfig", kubeconfig, scenario}, more...)...)
	}
	clean := func(t *testing.T) (removed string) {
		code, stdout, stderr := outcome(command(t, "cleanup", "--kubeconfig", kubeconfig))
		if code != 0 {
			t.Errorf("cleanup ends with %d: %s", code, stderr)
		}
		return stdout
	}
	t.Run("interrupted", func(t *testing.T) {
		out := t.TempDir()
		c := run(slow(t, 25*time.Second, true), "--report", out)
		running(t, c)
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := ended(t, c, 20*time.Second); code != 130 {
			t.Errorf("code %d; want 130", code)
		}
		if left := clean(t); left != "" {
			t.Errorf("an interrupted run left:\n%s", left)
		}
		if r := saved(t, out); !r.Interrupted || r.Summary.Error == 0 {
			t.Errorf("interrupted %t, %+v", r.Interrupted, r.Summary)
		}
	})
	t.Run("server gone", func(t *testing.T) {
		serverGone(t, kubeconfig)
		clean(t)
	})
	t.Run("interrupted twice", func(t *testing.T) {
		secondInterrupt(t, kubeconfig)
		clean(t)
	})
}

// through starts a relay to the API server, and returns a kubeconfig that uses it.
func through(t *testing.T, kubeconfig string) (relay, string) {
	t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "server: ")
	address, _, _ := strings.Cut(rest, "\n")
	parsed, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, parsed.Host)
	return r, file(t, "kubeconfig", strings.Replace(string(content), parsed.Host, r.address, 1))
}

// serverGone cuts the connections to the API server during a run.
func serverGone(t *testing.T, kubeconfig string) {
	r, front := through(t, kubeconfig)
	out := t.TempDir()
	c := command(t, "run", "--kubeconfig", front, slow(t, 25*time.Second, true), "--report", out)
	var stdout bytes.Buffer
	c.Stdout = &stdout
	running(t, c)
	r.cut()
	// The API server could restart, so the command waits for it.
	if code := ended(t, c, time.Minute); code != 4 {
		t.Errorf("code %d; want 4\n%s", code, &stdout)
	}
	if r := saved(t, out); r.Incomplete == "" || r.Interrupted || r.Summary.Error == 0 {
		t.Errorf("incomplete %q, interrupted %t, %+v", r.Incomplete, r.Interrupted, r.Summary)
	}
	if !strings.Contains(stdout.String(), "not reached") {
		t.Errorf("the report does not list the scenarios that were not reached:\n%s", &stdout)
	}
}

// secondInterrupt interrupts a run that cannot clean up, twice.
func secondInterrupt(t *testing.T, kubeconfig string) {
	r, front := through(t, kubeconfig)
	c := command(t, "run", "--kubeconfig", front, slow(t, 25*time.Second, true))
	printed := running(t, c)
	r.stall()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for line := range printed {
		if strings.HasPrefix(line, "removing ") {
			break
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal("the run ended by the first signal: ", err)
	}
	if code := ended(t, c, 5*time.Second); code != 130 {
		t.Errorf("code %d; want 130", code)
	}
}

// relay forwards connections from the command to the API server.
type relay struct {
	address string
	// stall stops the forwarding of requests; cut closes all connections.
	stall, cut func()
}

// newRelay forwards connections to an address.
func newRelay(t *testing.T, to string) relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stalled, ended := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			go func() { _, _ = io.Copy(in, out) }()
			go func() { _, _ = io.Copy(out, gate{in, stalled, ended}) }()
		}
	}()
	r := relay{address: listener.Addr().String(), stall: sync.OnceFunc(func() { close(stalled) })}
	r.cut = sync.OnceFunc(func() {
		close(ended)
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, one := range open {
			_ = one.Close()
		}
	})
	t.Cleanup(r.cut)
	return r
}

// gate is a reader that blocks after stalled is closed, until ended is closed.
type gate struct {
	io.Reader
	stalled, ended chan struct{}
}

func (g gate) Read(data []byte) (int, error) {
	n, err := g.Reader.Read(data)
	select {
	case <-g.stalled:
		<-g.ended
		return 0, io.EOF
	default:
		return n, err
	}
}

// saved reads the report of a run.
func saved(t *testing.T, dir string) report.Report {
	t.Helper()
	var r report.Report
	data, err := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
