package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
		most := 3 * time.Second
		if n%3 == 0 { // after the start
			startUser(t, command)
			most = 200 * time.Millisecond
		} else if err := command.Start(); err != nil {
			t.Fatal(err)
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

// A signal to the process and to all that run in its terminal, as when the terminal is closed, leaves nothing.
func TestSignalToAllLeavesNothing(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as with nohup")
	}
	assets(t)
	command, folder := user(t)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	startUser(t, command)
	if found := processesIn(t, folder); len(found) < 3 {
		t.Errorf("the test finds these processes, want the servers' processes too: %q", found)
	}
	if err := syscall.Kill(-command.Process.Pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) {
		t.Errorf("the process ended with %v; want a signal", err)
	}
	wantNothingLeft(t, folder)
}

// startUser starts a process of a user, and waits until it has started the server.
func startUser(t *testing.T, command *exec.Cmd) {
	t.Helper()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len("started"))
	if _, err := io.ReadFull(out, text); err != nil || string(text) != "started" {
		t.Fatalf("the process printed %q, %v; want started", text, err)
	}
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
	wantOnlyUnixSockets(t, socketsOf(t, server), server.supervision.folder)
	wantUnreachableByOthers(t, filepath.Join(server.supervision.folder, "etcd.sock"))
}

// wantOnlyUnixSockets fails if one of the sockets listens, apart from two Unix sockets in a folder: one for clients and one
// for members.
func wantOnlyUnixSockets(t *testing.T, sockets map[string]bool, folder string) {
	t.Helper()
	found := 0
	for table, columns := range map[string]struct {
		inode, state int
		listens      string
	}{"tcp": {9, 3, "0A"}, "tcp6": {9, 3, "0A"}, "unix": {6, 3, "00010000"}} {
		text, _ := os.ReadFile("/proc/net/" + table) // there is no tcp6 without IPv6
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) <= columns.inode || fields[columns.state] != columns.listens || !sockets[fields[columns.inode]] {
				continue
			}
			path := fields[len(fields)-1]
			if table == "unix" && (path == "peer.sock" || filepath.Dir(path) == folder) { // the first is relative to the folder
				found++
				continue
			}
			t.Errorf("etcd listens outside of its folder: %s", line)
		}
	}
	if found != 2 {
		t.Errorf("etcd listens on %d Unix sockets; want 2", found)
	}
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

// socketsOf returns the inodes of the sockets of etcd.
func socketsOf(t *testing.T, server *Server) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, process := range processesIn(t, server.supervision.folder) {
		number, line, _ := strings.Cut(process, " ")
		if !strings.HasPrefix(line, assets(t).Etcd()+" ") {
			continue
		}
		files, err := filepath.Glob("/proc/" + number + "/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			target, _ := os.Readlink(file)
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				found[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("the test does not find the sockets of etcd")
	}
	return found
}
