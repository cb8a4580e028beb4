package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// The limits of the end of a program.
const (
	// grace is the time between SIGTERM and SIGKILL.
	grace = 10 * time.Second
	// outputLimit limits the wait for the last output after the end: a process that it started
	// can keep the pipe open.
	outputLimit = time.Second
)

// The limits of Program.Log, in bytes and lines.
const (
	logSize  = 8 << 10
	logLines = 30
)

// How a program gets the folder with ProgramOptions.Certificates.
const (
	CertDirPlaceholder = "{cert-dir}"
	CertDirVariable    = "ADMISSIONTEST_CERT_DIR"
)

// ProgramOptions configure a Program. Command is required.
type ProgramOptions struct {
	// Command is the program and its arguments.
	Command []string
	// KubeConfig is the content of a kubeconfig file. The program gets its path in KUBECONFIG.
	KubeConfig []byte
	// Certificates are the files of a folder, by name. The program gets its path in CertDirVariable, and
	// wherever its arguments contain CertDirPlaceholder.
	Certificates map[string][]byte
	// Ended is called when the program ends before Stop, with the reason. Nil calls nothing.
	Ended func(error)

	// grace replaces the time between SIGTERM and SIGKILL in tests. 0 means grace.
	grace time.Duration
}

// Program is a running program.
type Program struct {
	options    ProgramOptions
	command    *exec.Cmd
	folder     string
	life, hold *os.File // the read and the write end of the pipe of this process
	log        Log
	stopping   chan struct{} // closed when Stop begins
	ended      chan struct{} // closed when the program ended, after the call of ProgramOptions.Ended
}

// FindProgram returns the path of a program. The error says what to do.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound) && !strings.Contains(name, "/"):
		return "", fmt.Errorf("program %q is not in PATH; write ./%s for one in this folder", name, name)
	case err != nil && errors.Unwrap(err) != nil:
		return "", fmt.Errorf("program %q cannot be run: %w", name, errors.Unwrap(err))
	case err != nil:
		return "", fmt.Errorf("program %q cannot be run: %w", name, err)
	}
	return path, nil
}

// StartProgram starts a program in its own process group. Its environment is that of this process, with
// another KUBECONFIG, and CertDirVariable.
func StartProgram(options ProgramOptions) (*Program, error) {
	p := &Program{options: options, log: Log{Last: logSize}, stopping: make(chan struct{}), ended: make(chan struct{})}
	if err := p.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", options.Command[0], err), p.release())
	}
	go p.wait()
	return p, nil
}

func (p *Program) start() error {
	path, err := FindProgram(p.options.Command[0])
	if err != nil {
		return err
	}
	if p.folder, err = userfile.MkdirTemp("admissiontest-program-"); err != nil {
		return err
	}
	kubeconfig, certificates := filepath.Join(p.folder, "kubeconfig"), filepath.Join(p.folder, "certificates")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		return err
	}
	files := map[string][]byte{kubeconfig: p.options.KubeConfig}
	for name, content := range p.options.Certificates {
		files[filepath.Join(certificates, name)] = content
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	arguments := make([]string, len(p.options.Command)-1)
	for i := range arguments {
		arguments[i] = strings.ReplaceAll(p.options.Command[i+1], CertDirPlaceholder, certificates)
	}
	if p.life, p.hold, err = os.Pipe(); err != nil {
		return err
	}
	p.command = Guarded(GuardOptions{Life: p.life, Folder: p.folder, Path: path, Arguments: arguments})
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, CertDirVariable+"="+certificates)
	p.command.WaitDelay = outputLimit
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	return p.command.Start()
}

// wait waits for the end of the program.
func (p *Program) wait() {
	defer close(p.ended)
	_ = p.command.Wait() // ProcessState says more
	select {
	case <-p.stopping:
	default:
		if p.options.Ended != nil {
			p.options.Ended(p.reason())
		}
	}
}

// reason is the error of a program that ended by itself.
func (p *Program) reason() error {
	printed := "it printed nothing"
	if text := p.Log(); text != "" {
		printed = "its last output:\n" + text
	}
	return fmt.Errorf("%s ended before the run (%s); it must serve until it gets SIGTERM\n%s", p.options.Command[0], p.command.ProcessState, printed)
}

// Log returns the end of what the program printed.
func (p *Program) Log() string { return strings.Join(p.log.Lines(logLines), "\n") }

// WaitUntilEnded waits until the program has ended or the context is done.
func (p *Program) WaitUntilEnded(ctx context.Context) {
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
}

// Stop ends the program by SIGTERM, and by SIGKILL if it has not ended after the grace period. Then
// the rest of its process group is killed. Killed reports whether the grace period was over.
func (p *Program) Stop() (killed bool, err error) {
	close(p.stopping)
	select {
	case <-p.ended:
	default:
		err = Terminate(p.command.Process)
		limit := p.options.grace
		if limit == 0 {
			limit = grace
		}
		limited, cancel := WithTimeout(context.Background(), limit)
		defer cancel()
		p.WaitUntilEnded(limited)
		killed = limited.Err() != nil
	}
	_ = Kill(p.command.Process) // it fails if no process of the group is left
	<-p.ended
	if err = errors.Join(err, p.release()); err != nil {
		return killed, fmt.Errorf("stop %s: %w", p.options.Command[0], err)
	}
	return killed, nil
}

// release removes the files.
func (p *Program) release() error {
	for _, file := range []*os.File{p.hold, p.life} {
		if file != nil {
			_ = file.Close()
		}
	}
	if p.folder == "" {
		return nil
	}
	return os.RemoveAll(p.folder)
}
