package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// interruptedCommand is a command line, and what it does when it gets the signal.
type interruptedCommand struct {
	args []string
	env  []string
	// reached reports whether a process has reached the phase. Nil means that it has computed for some time.
	reached func(pid int) bool
	// leaves is true if a program of the user, a credential plugin, outlives the command.
	leaves bool
}

// scene is what the commands of TestInterrupted use.
type scene struct {
	dir string
	// hung has a line for each program that hangs: its process.
	hung string
}

// The first signal ends each command within two seconds, in each phase, with exit code 130. No process and no
// temporary file is left.
func TestInterrupted(t *testing.T) {
	s := &scene{dir: t.TempDir()}
	s.hung = filepath.Join(s.dir, "hung")
	commands := map[string]interruptedCommand{}
	for _, add := range []func(*testing.T, map[string]interruptedCommand){s.files, s.programs, s.servers} {
		add(t, commands)
	}
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	for i, name := range slices.Sorted(maps.Keys(commands)) {
		signal := signals[i%len(signals)]
		t.Run(name+"/"+signal.String(), func(t *testing.T) { s.interrupt(t, commands[name], signal) })
	}
}

// interrupt runs a command line and sends it a signal.
func (s *scene) interrupt(t *testing.T, c interruptedCommand, signal syscall.Signal) {
	temporary, err := os.MkdirTemp("", "at-") //nolint:usetesting // a short path: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	_ = os.Remove(s.hung)
	process, said := command(t.Context(), c.args...)
	process.Env = append(append(process.Env, "TMPDIR="+temporary), c.env...)
	process.WaitDelay = time.Second // a credential plugin has the same output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	pid := process.Process.Pid
	reached := c.reached
	if reached == nil {
		reached = func(pid int) bool { return computed(pid) > 400*time.Millisecond }
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return reached(pid), nil })
	if err != nil {
		_ = process.Process.Kill()
		t.Fatalf("the command did not come to this phase: %v; it ended with %v and printed %s", err, <-ended, said)
	}
	_ = process.Process.Signal(signal)
	began := time.Now()
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case err = <-ended:
	case <-limited.Done():
		_ = process.Process.Signal(syscall.SIGQUIT)
		err = fmt.Errorf("not after 10 s: %w", <-ended)
	}
	if code := process.ProcessState.ExitCode(); code != exitInterrupted || time.Since(began) > 3*time.Second {
		t.Errorf("it ended with %v after %s, want exit code %d within two seconds; it printed %s", err, time.Since(began), exitInterrupted, said)
	}
	if left, _ := os.ReadDir(temporary); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	pids, _ := os.ReadFile(s.hung)
	for _, text := range strings.Fields(string(pids)) {
		child, _ := strconv.Atoi(text)
		// A process that was killed is runnable until a processor is free for it to end.
		gone := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 2*time.Second, true, func(context.Context) (bool, error) { return c.leaves || stateOf(child) == "", nil })
		if state := stateOf(child); state != "" && syscall.Kill(child, syscall.SIGKILL) == nil && gone != nil {
			t.Errorf("process %d is left, in state %s", child, state)
		}
	}
}

// stateOf returns the state of a process, as ps does, or "" if it has ended, also as a zombie: the parent of a
// server is killed with it.
func stateOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(text, []byte(") "))
	if state, _, found := strings.Cut(string(rest), " "); found && state != "Z" && state != "X" {
		return state
	}
	return ""
}

// computed returns the processor time of a process.
func computed(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(text, []byte(") "))
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// files adds commands that read large files.
func (s *scene) files(t *testing.T, commands map[string]interruptedCommand) {
	const document = "---\napiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: mine.a%d-%d}\nspec:\n  level: MUST\n  requirement: A requirement.\n" +
		"  source: [https://example.com]\n  when:\n    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b, c: d, e: f}}\n      then: {code: 201}\n"
	large, report := filepath.Join(s.dir, "large"), filepath.Join(s.dir, "report")
	for i := range 40 {
		var text strings.Builder
		for j := range 2500 {
			fmt.Fprintf(&text, document, i, j)
		}
		writeFile(t, filepath.Join(large, fmt.Sprintf("%d.yaml", i)), text.String(), 0o600)
	}
	writeFile(t, filepath.Join(report, "report.json"), `{"apiVersion":"admissiontest.dev/v1alpha1","kind":"Report","outcomes":[`+
		strings.Repeat(`{"name":"a","level":"MUST","verdict":"pass","requirement":"A requirement."},`, 400_000)+`{}]}`, 0o600)
	for name, args := range map[string][]string{
		"list": {"list", large}, "explain": {"explain", large}, "run": {"run", large}, "watch": {"run", "--watch", large},
		"html": {"report", "html", report}, "diff": {"report", "diff", report, report}, "merge": {"report", "merge", report},
	} {
		commands[name+" large files"] = interruptedCommand{args: args}
	}
}

// programs adds commands that run programs, which hang.
func (s *scene) programs(t *testing.T, commands map[string]interruptedCommand) {
	hang := "#!/bin/sh\necho $$ >>" + s.hung + "\nexec sleep 1000\n"
	version := "#!/bin/sh\n[ \"$1\" = --version ] && { echo %s; exit 0; }\n" + strings.TrimPrefix(hang, "#!/bin/sh\n")
	bin := filepath.Join(s.dir, "bin")
	for _, name := range []string{"go", "docker", "podman", "nerdctl"} {
		writeFile(t, filepath.Join(bin, name), hang, 0o700)
	}
	for name, file := range map[string]map[string]string{
		"versions": {"etcd": hang, "kube-apiserver": hang},
		"starts":   {"etcd": fmt.Sprintf(version, "etcd Version: 3.6.8"), "kube-apiserver": fmt.Sprintf(version, "Kubernetes v"+binaries.DefaultVersion)},
	} {
		for binary, text := range file {
			writeFile(t, filepath.Join(s.dir, name, binary), text, 0o700)
		}
	}
	env := []string{"PATH=" + bin + ":/usr/bin:/bin", "XDG_CACHE_HOME=" + filepath.Join(s.dir, "cache"), "HOME=" + s.dir}
	reached := func(int) bool { text, _ := os.ReadFile(s.hung); return len(text) > 0 }
	for name, args := range map[string][]string{
		"assets build": {"assets", "build"}, "run builds": {"run", "wire"}, "serve builds": {"serve"}, "image": {"image", "--tarball", filepath.Join(s.dir, "image.tar")},
		"kind": {"run", "wire", "--target", "kind"}, "cleanup of kind": {"cleanup", "--target", "kind"},
		"version of a server": {"run", "wire", "--assets-dir", filepath.Join(s.dir, "versions")}, "assets path": {"assets", "path", "--assets-dir", filepath.Join(s.dir, "versions")},
		"assets list": {"assets", "list", "--assets-dir", filepath.Join(s.dir, "versions")},
		"start":       {"run", "wire", "--assets-dir", filepath.Join(s.dir, "starts")}, "serve starts": {"serve", "--assets-dir", filepath.Join(s.dir, "starts")},
	} {
		commands[name] = interruptedCommand{args: args, env: env, reached: reached}
	}
}

// servers adds commands that wait for a response of an API server, at each path, or for its credentials.
func (s *scene) servers(t *testing.T, commands map[string]interruptedCommand) {
	hang := filepath.Join(s.dir, "login")
	writeFile(t, hang, "#!/bin/sh\necho $$ >>"+s.hung+"\nexec sleep 1000\n", 0o700)
	exec := "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: " + hang + "}}"
	for _, path := range []string{"/version", "/api", "/apis", "/apis/g7.example.com/v1", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/api/v1/namespaces", "/api/v1/configmaps", "login"} {
		asked := make(chan struct{}, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				select {
				case asked <- struct{}{}:
				default:
				}
				_, _ = io.Copy(io.Discard, r.Body) // otherwise the end of the connection is not noticed
				<-r.Context().Done()
				return
			}
			manyGroups(w, r)
		}))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		server.StartTLS()
		t.Cleanup(server.Close)
		user, reached := "{}", func(int) bool {
			select {
			case <-asked:
				return true
			default:
				return false
			}
		}
		if path == "login" {
			user, reached = exec, func(int) bool { text, _ := os.ReadFile(s.hung); return len(text) > 0 }
		}
		kubeconfig := filepath.Join(s.dir, strings.ReplaceAll("kubeconfig"+path, "/", "-"))
		writeFile(t, kubeconfig, "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '"+server.URL+"', insecure-skip-tls-verify: true}}], users: [{name: a, user: "+user+
			"}], contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}\n", 0o600)
		for _, name := range []string{"cleanup", "run"} {
			if name == "cleanup" && strings.Contains(path, "review") || name == "run" && (path == "/api/v1/configmaps" || path == "/api/v1/namespaces") {
				continue // it does not ask this
			}
			args := []string{name, "--kubeconfig", kubeconfig}
			commands[name+" waits for "+path] = interruptedCommand{args: args, reached: reached, leaves: path == "login"}
		}
	}
}

// manyGroups is an API server with 9,000 groups, each of which must be asked for.
func manyGroups(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var text strings.Builder
	switch path := r.URL.Path; {
	case path == "/version":
		text.WriteString(`{"gitVersion":"v1.36.3"}`)
	case path == "/api":
		text.WriteString(`{"kind":"APIVersions","versions":["v1"]}`)
	case path == "/apis":
		text.WriteString(`{"kind":"APIGroupList","groups":[`)
		for i := range 9000 {
			fmt.Fprintf(&text, `{"name":"g%d.example.com","versions":[{"version":"v1"}]},`, i)
		}
		text.WriteString(`{"name":"coordination.k8s.io","versions":[{"version":"v1"}]}]}`)
	case path == "/api/v1":
		text.WriteString(`{"kind":"APIResourceList","resources":[{"name":"namespaces","kind":"Namespace","verbs":["list","delete"]}]}`)
	case strings.Count(path, "/") == 3:
		text.WriteString(`{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget","verbs":["list","delete"]}]}`)
	case r.Method == http.MethodGet:
		text.WriteString(`{"kind":"List","apiVersion":"v1","items":[]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		text.WriteString(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
	_, _ = w.Write([]byte(text.String()))
}

// A run that waits for the rest of its input ends with the first signal.
func TestInterruptedInput(t *testing.T) {
	for _, args := range [][]string{{"run", "-"}, {"list", "-"}} {
		t.Run(args[0], func(t *testing.T) {
			process, said := command(t.Context(), args...)
			input, err := process.StdinPipe()
			if err == nil {
				err = process.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := input.Write(bytes.Repeat([]byte("# \n"), 40_000)); err != nil { // more than a pipe has room for
				t.Fatal(err)
			}
			_ = process.Process.Signal(syscall.SIGTERM)
			if err := process.Wait(); process.ProcessState.ExitCode() != exitInterrupted {
				t.Errorf("%v: %v, want exit code %d; it printed %s", args, err, exitInterrupted, said)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}
