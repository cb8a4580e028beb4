package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/internal/guard"
	"github.com/admissiontest/admissiontest/internal/served"
)

// args returns the command line that serves in the foreground.
func (f *serveFlags) args() []string {
	args := []string{"serve", "--idle", f.idle.String()}
	for _, flag := range [][2]string{{"--k8s-version", f.Version}, {"--assets-dir", f.Dir}} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	for _, one := range f.Plugins {
		args = append(args, "--plugin", one.String())
	}
	if f.noBuild {
		args = append(args, "--no-build")
	}
	return args
}

// serveInBackground starts another process that serves, and returns when the server is ready. It
// knows this from the line that the process prints on standard output. Standard error of the
// process goes to a log file.
func (a *app) serveInBackground(ctx context.Context, f *serveFlags, key string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program of this process: %w", err)
	}
	log, err := served.Place{}.CreateLog(key)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.CommandContext(context.WithoutCancel(ctx), program, f.args()...)
	command.Stderr = log
	guard.Detach(command)
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return fmt.Errorf("serve in the background: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = guard.Terminate(command.Process) })
	ready, err := bufio.NewReader(stdout).ReadString('\n')
	stop()
	if err == nil && ctx.Err() == nil {
		_, err = io.WriteString(a.Stdout, ready)
		return err
	}
	_ = command.Wait() // the exit code says more
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return fmt.Errorf("serve in the background: %w", err)
	}
	reason := strings.ReplaceAll(strings.TrimSpace(string(text)), "admissiontest: ", "")
	return exit.New(command.ProcessState.ExitCode(), errors.New(reason))
}
