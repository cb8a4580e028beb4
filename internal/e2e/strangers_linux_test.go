package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/port"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
)

// strangerMode is the variable that makes this program a client that knows no secret.
const strangerMode = "ADMISSIONTEST_TEST_STRANGER"

// TestStrangerProcess is that client. Its standard input has an address on each line, to which it holds many
// connections until the input ends. With the mode "again" it replaces those that are closed.
func TestStrangerProcess(t *testing.T) {
	mode := os.Getenv(strangerMode)
	if mode == "" {
		t.Skip("it is a process of TestStrangersBesideARun")
	}
	hold := func(address string) {
		for {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, connection)
			_ = connection.Close()
			if mode != "again" {
				return
			}
		}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		for range port.NewStrangers(port.Most).Limit() + 100 {
			go hold(lines.Text())
		}
	}
}

// Another process, of another user if possible, holds more connections than there can be to each port that this
// process listens on. The verdicts are as in a quiet run, or inconclusive, with the cause, if the process replaces
// each connection that is closed.
func TestStrangersBesideARun(t *testing.T) {
	scenarios := slices.DeleteFunc(catalogue(t), func(s scenario.Scenario) bool { return s.Area != "failurepolicy" })
	for _, mode := range []string{"once", "again"} {
		t.Run(mode, func(t *testing.T) {
			attack(t, mode)
			out, err := engine.Run(t.Context(), engine.Options{Scenarios: scenarios, Provider: providers.NewEnvtest(providers.EnvtestOptions{})})
			if err != nil {
				t.Fatal(err)
			}
			if out.ClosedConnections == 0 {
				t.Error("no connection was closed")
			}
			for _, outcome := range out.Outcomes {
				if !undisturbed(outcome, mode) {
					t.Errorf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason)
				}
			}
		})
	}
}

func undisturbed(outcome report.Outcome, mode string) bool {
	known := mode == "again" && outcome.Verdict == framework.Inconclusive && strings.Contains(outcome.Reason, "other clients made so many connections")
	return outcome.Verdict == framework.Pass || known
}

// attack starts the process, which ends with the test.
func attack(t *testing.T, mode string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	process := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^TestStrangerProcess$")
	process.Env = append(os.Environ(), strangerMode+"="+mode)
	process.Dir = "/"
	if os.Getuid() == 0 {
		process.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		t.Log("only root can start a process of another user: it is one of this user")
	}
	input, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		known := map[string]bool{}
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			for _, address := range listening() {
				if !known[address] {
					known[address] = true
					_, _ = fmt.Fprintln(input, address)
				}
			}
			<-ticker.C
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-watched
		_ = process.Wait()
	})
}

// listening returns the addresses on which this process listens for TCP over IPv4.
func listening() []string {
	files, _ := filepath.Glob("/proc/self/fd/*")
	sockets := map[string]bool{}
	for _, file := range files {
		target, _ := os.Readlink(file)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	table, _ := os.ReadFile("/proc/self/net/tcp")
	found := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		const state, listens, inode = 3, "0A", 9
		fields := strings.Fields(line)
		if len(fields) <= inode || fields[state] != listens || !sockets[fields[inode]] {
			continue
		}
		var number int
		if _, err := fmt.Sscanf(fields[1], "0100007F:%X", &number); err == nil {
			found[fmt.Sprintf("127.0.0.1:%d", number)] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}
