//go:build unix

package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is the limit of each wait of a test.
const patience = 30 * time.Second

// started is a Program that runs a shell script.
type started struct {
	*Program
	ended chan error
}

// wait waits until the script has printed a string.
func (s *started) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !strings.Contains(s.Log(), text) {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("the script printed %q, want %q", s.Log(), text)
		}
	}
}

// run starts a script. TMPDIR is a folder of the test, in which nothing may be left.
func run(t *testing.T, grace time.Duration, script string) *started {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	s := &started{ended: make(chan error, 1)}
	var err error
	s.Program, err = StartProgram(ProgramOptions{
		Command: []string{"sh", "-c", script, "sh", "a b", "", "--in={cert-dir}/tls.key"}, KubeConfig: []byte("content"),
		Certificates: map[string][]byte{"tls.key": []byte("secret")}, Ended: func(err error) { s.ended <- err }, grace: grace,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stop stops the program and checks that nothing is left.
func (s *started) stop(t *testing.T, wantKilled bool) {
	t.Helper()
	killed, err := s.Stop()
	if err != nil || killed != wantKilled {
		t.Errorf("Stop = %t, %v; want %t", killed, err, wantKilled)
	}
	files, err := os.ReadDir(os.TempDir())
	if err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
	if err := syscall.Kill(-s.command.Process.Pid, 0); err == nil {
		// Killed processes stay in the group until they are waited for: by the shell that was
		// killed too, so by the init process.
		wantZombies(t, s.command.Process.Pid)
	}
}

// wantZombies waits until no process of a group runs.
func wantZombies(t *testing.T, group int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if len(running(group)) == 0 {
			return
		}
	}
	t.Errorf("processes of the group run: %v", running(group))
}

// running returns the processes of a group that run. Without /proc there are none.
func running(group int) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []string
	for _, file := range files {
		data, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest) // state, parent, group
		if len(fields) > 2 && fields[0] != "Z" && fields[2] == fmt.Sprint(group) {
			found = append(found, string(data))
		}
	}
	return found
}

// The program gets its arguments, the environment, and a kubeconfig that only this user can read.
func TestProgram(t *testing.T) {
	t.Setenv("KUBECONFIG", "another")
	t.Setenv("ADMISSIONTEST_TEST_VALUE", "v")
	s := run(t, 0, `trap 'echo bye; exit 0' TERM; echo "$# <$1> $ADMISSIONTEST_TEST_VALUE $(cat "${3#--in=}" "$KUBECONFIG") $(ls -ld "$ADMISSIONTEST_CERT_DIR" "$ADMISSIONTEST_CERT_DIR/tls.key" | cut -c1-10 | tr '\n' ' ') $(ls -l "$KUBECONFIG" | cut -c1-10) $(wc -c)" >&2; echo ready; while :; do sleep 0.01; done`)
	s.wait(t, "ready")
	s.stop(t, false)
	// A shell can print that its sleep was terminated.
	if want := "3 <a b> v secretcontent drwx------ -rw-------  -rw------- 0\nready\n"; !strings.HasPrefix(s.Log(), want) || !strings.HasSuffix(s.Log(), "bye") {
		t.Errorf("log %q; want %q and bye", s.Log(), want)
	}
	select {
	case err := <-s.ended:
		t.Errorf("Ended was called: %v", err)
	default:
	}
}

// A program that ignores SIGTERM is killed, and so is a child that does.
func TestProgramIgnoresSIGTERM(t *testing.T) {
	s := run(t, 50*time.Millisecond, `trap "" TERM; echo ready; while :; do sleep 0.01; done`)
	s.wait(t, "ready")
	s.stop(t, true)
	s = run(t, 0, `(trap "" TERM; echo child; while :; do sleep 0.01; done) & trap 'exit 0' TERM; echo parent; wait`)
	s.wait(t, "child")
	s.wait(t, "parent")
	s.stop(t, false)
}

// A program that ends by itself is reported with its status and the end of its log.
func TestProgramEnds(t *testing.T) {
	s := run(t, 0, `i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; exit 3`)
	err := <-s.ended
	const want = "sh ended before the run (exit status 3); it must serve until it gets SIGTERM\nits last output:\nline 2970\n"
	if !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "\nline 2999") {
		t.Errorf("got %v\nwant %s", err, want)
	}
	s.stop(t, false)
	s = run(t, 0, `kill -s KILL $$`)
	if err := <-s.ended; !strings.Contains(err.Error(), "(signal: killed)") || !strings.HasSuffix(err.Error(), "\nit printed nothing") {
		t.Errorf("got %v", err)
	}
	s.stop(t, false)
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{"run": 0o700, "text": 0o600} {
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"./run":      "",
		"sh":         "",
		"run":        `program "run" is not in PATH; write ./run for one in this folder`,
		"./none":     `program "./none" cannot be run: stat ./none: no such file or directory`,
		"./text":     `program "./text" cannot be run: permission denied`,
		dir:          `cannot be run: is a directory`,
		"":           `program "" is not in PATH`,
		"./run/none": `program "./run/none" cannot be run: stat ./run/none: not a directory`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FindProgram(name)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if _, err := StartProgram(ProgramOptions{Command: []string{"./none"}}); err == nil || !strings.Contains(err.Error(), `start ./none: program "./none" cannot be run`) {
		t.Errorf("Start: got %v", err)
	}
}
