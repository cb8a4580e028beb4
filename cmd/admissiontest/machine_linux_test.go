package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// A second interrupt ends the command without a cleanup. It leaves no etcd, no kube-apiserver
// and no folder.
func TestSecondInterruptLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	temporary := t.TempDir()
	c := command(t, "run", slow(t, 25*time.Second, true))
	c.Env = append(c.Env, "TMPDIR="+temporary)
	printed := running(t, c)
	if n := len(processesWith(t, temporary)); n < 3 {
		t.Fatalf("the test finds %d processes; want the command, etcd and kube-apiserver", n)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for line := range printed {
		if strings.Contains(line, "interrupt again to exit at once") {
			break
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := ended(t, c, 20*time.Second); code != 130 {
		t.Errorf("code %d; want 130", code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var left []string
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		files, err := os.ReadDir(temporary)
		left = processesWith(t, temporary)
		for _, one := range files {
			left = append(left, one.Name())
		}
		return len(left) == 0, err
	})
	if err != nil {
		t.Errorf("left after a second interrupt:\n%s", strings.Join(left, "\n"))
	}
}

// processesWith returns the running processes whose command line or environment has a string.
func processesWith(t *testing.T, text string) []string {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, folder := range folders {
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline")) // empty if the process has ended
		environ, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if bytes.Contains(line, []byte(text)) || bytes.Contains(environ, []byte(text)) {
			found = append(found, filepath.Base(folder)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
