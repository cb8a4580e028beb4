package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// beAUser in the environment makes the test binary a program that starts a server and waits.
const beAUser = "ADMISSIONTEST_TEST_START"

// TestAsAUser is not a test: see beAUser.
func TestAsAUser(t *testing.T) {
	if os.Getenv(beAUser) == "" {
		t.Skip("other tests run this, as a process that they kill")
	}
	if _, err := Start(t.Context(), Options{BinaryAssetsDirectory: assets(t).Dir}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("started")
	select {}
}

func assets(t *testing.T) binaries.Assets {
	t.Helper()
	found, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// user returns a process that starts a server, whose TMPDIR is the returned folder.
func user(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestAsAUser$")
	folder := t.TempDir()
	command.Env = append(os.Environ(), beAUser+"=1", "TMPDIR="+folder)
	return command, folder
}

// processesIn returns the running processes, apart from processes of which only the exit code is
// left, whose command line or environment has a string.
func processesIn(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, _ := os.ReadFile(file) // empty if the process has ended
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if bytes.Contains(line, []byte(text)) || bytes.Contains(environ, []byte(text)) {
			found = append(found, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// wantNothingLeft waits until no process and no file of a server is left.
func wantNothingLeft(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var running []string
	var files []os.DirEntry
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		running = processesIn(t, folder)
		var err error
		files, err = os.ReadDir(folder)
		return len(running)+len(files) == 0, err
	})
	if err != nil {
		t.Errorf("left after %s: files %v, processes:\n%s", patience, files, strings.Join(running, "\n"))
	}
}

// A process that is killed at any moment leaves no server and no folder.
func TestKilledProcessLeavesNothing(t *testing.T) {
	assets(t) // before the processes look for them
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range 10 {
		command, folder := user(t)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		most := 3 * time.Second
		if n%3 == 0 { // after the start
			text := make([]byte, len("started"))
			if _, err := io.ReadFull(out, text); err != nil || string(text) != "started" {
				t.Fatalf("the process printed %q, %v; want started", text, err)
			}
			most = 200 * time.Millisecond
		}
		after := time.Duration(random.Int64N(int64(most)))
		killed := time.AfterFunc(after, func() { _ = command.Process.Kill() })
		_ = command.Wait() // it is killed
		if killed.Stop() {
			t.Errorf("kill %d: the process ended before", n)
		}
		wantNothingLeft(t, folder)
		if t.Failed() {
			t.Fatalf("kill %d, after %s (seed %d)", n, after, seed)
		}
	}
}

// A terminal that is closed sends SIGHUP to the process and not to the servers.
func TestClosedTerminalLeavesNothing(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as with nohup")
	}
	assets(t)
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil { //nolint:gosec // a file descriptor is small
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN) //nolint:gosec // a file descriptor is small
	if err != nil {
		t.Fatal(err)
	}
	inside, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	command, folder := user(t)
	command.Stdin, command.Stdout, command.Stderr = inside, inside, inside
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(command.Start(), inside.Close()); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len("started"))
	if _, err := io.ReadFull(terminal, text); err != nil || string(text) != "started" {
		t.Fatalf("the process printed %q, %v; want started", text, err)
	}
	if found := processesIn(t, folder); len(found) < 3 {
		t.Errorf("the test finds these processes, want the servers' processes too: %q", found)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) {
		t.Errorf("the process ended with %v; want a signal", err)
	}
	wantNothingLeft(t, folder)
}

// Clients without credentials cannot read a key of etcd: it does not listen on a port, nor on
// a Unix socket that another user can connect to.
func TestEtcdIsNotOpen(t *testing.T) {
	server, err := Start(t.Context(), Options{BinaryAssetsDirectory: assets(t).Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	sockets := socketsOf(t, etcdOf(t, server))
	if len(sockets) == 0 {
		t.Fatal("the test does not find the sockets of etcd")
	}
	for _, port := range listening(t, sockets) {
		answer, err := http.Post("http://127.0.0.1:"+port+"/v3/kv/range", "application/json", strings.NewReader(`{"key":"AA==","range_end":"AA==","limit":1}`))
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			t.Errorf("a client without credentials reads keys: %s %.200s", answer.Status, text)
		}
		t.Errorf("etcd listens on port %s of the loopback address", port)
	}
	found := 0
	for _, path := range unixSockets(t, sockets) {
		found++
		if strings.HasPrefix(path, "@") {
			t.Errorf("etcd listens on the abstract socket %s, which every user can connect to", path)
		}
		if filepath.IsAbs(path) && filepath.Dir(path) != server.supervision.folder {
			t.Errorf("etcd listens on %s, which is not in the folder %s", path, server.supervision.folder)
		}
	}
	if found != 2 {
		t.Errorf("etcd listens on %d Unix sockets; want 2, one for clients and one for members", found)
	}
	wantUnreachableByOthers(t, filepath.Join(server.supervision.folder, "etcd.sock"))
}

// etcdOf returns the process of etcd.
func etcdOf(t *testing.T, server *Server) int {
	t.Helper()
	for _, process := range processesIn(t, server.supervision.folder) {
		number, line, _ := strings.Cut(process, " ")
		if pid, err := strconv.Atoi(number); err == nil && strings.HasPrefix(line, assets(t).Etcd()+" ") {
			return pid
		}
	}
	t.Fatal("found no process of etcd")
	return 0
}

// wantUnreachableByOthers fails if another user can connect to a socket.
func wantUnreachableByOthers(t *testing.T, socket string) {
	t.Helper()
	if os.Getuid() != 0 {
		return // only root can act as another user; TestFolder checks the mode
	}
	other := exec.CommandContext(t.Context(), "/bin/sh", "-c", `test -e "$1"`, "sh", socket)
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := other.Run(); err == nil {
		t.Errorf("another user can reach the socket %s of etcd", socket)
	}
}

// socketsOf returns the inodes of the sockets of a process.
func socketsOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		target, _ := os.Readlink(file)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			found[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return found
}

// listening returns the TCP ports of those sockets that listen.
func listening(t *testing.T, sockets map[string]bool) []string {
	t.Helper()
	const state, listens, inode = 3, "0A", 9
	var ports []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table) // there is no tcp6 without IPv6
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) <= inode || fields[state] != listens || !sockets[fields[inode]] {
				continue
			}
			_, port, _ := strings.Cut(fields[1], ":")
			number, err := strconv.ParseUint(port, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			ports = append(ports, strconv.FormatUint(number, 10))
		}
	}
	return ports
}

// unixSockets returns the paths of those sockets that listen.
func unixSockets(t *testing.T, sockets map[string]bool) []string {
	t.Helper()
	const flags, accepts, inode, path = 3, "00010000", 6, 7
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > path && fields[flags] == accepts && sockets[fields[inode]] {
			paths = append(paths, fields[path])
		}
	}
	return paths
}
