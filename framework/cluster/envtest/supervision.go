package envtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/admissiontest/admissiontest/internal/guard"
	"github.com/admissiontest/admissiontest/internal/owned"
)

// keeper removes the folder $1 when this process has closed the pipe (file 3) or ended, and
// after that all servers and guards, which hold the other end of file 4, have ended.
const keeper = `trap "" HUP INT QUIT TERM
read -r line <&3
read -r line <&4
rm -rf -- "$1"`

// supervision ties servers and their folder to this process. If this process ends without
// close, even by SIGKILL, the kernel closes its files; then the servers are killed and the
// folder is removed. Nothing polls.
type supervision struct {
	folder string

	life, hold       *os.File // the read and the write end of the pipe of this process
	running, serving *os.File // the read and the write end of the pipe of the servers
	keeper           *exec.Cmd
}

// supervise makes a folder that only this user can read. Its keeper runs before the folder
// exists, so there is no moment at which the folder can be left.
func supervise() (_ *supervision, err error) {
	parent, err := owned.TempDir()
	if err != nil {
		return nil, err
	}
	s := &supervision{folder: filepath.Join(parent, "admissiontest-"+rand.Text())}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.life, s.hold, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	if s.running, s.serving, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	s.keeper = exec.CommandContext(context.Background(), guard.Shell, "-c", keeper, guard.Shell, s.folder)
	s.keeper.Env, s.keeper.ExtraFiles = environment("/"), []*os.File{s.life, s.running}
	guard.Detach(s.keeper)
	if err := s.keeper.Start(); err != nil {
		s.keeper = nil
		return nil, fmt.Errorf("start a shell: %w", err)
	}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the servers: %w; set TMPDIR to a directory that you can write to", err)
	}
	return s, nil
}

// command returns a command whose process is killed when this process ends. It outlives the
// context of Start.
func (s *supervision) command(dir, path string, arguments ...string) *exec.Cmd {
	command := guard.Command(guard.Options{Life: s.life, Path: path, Arguments: arguments})
	command.Dir, command.Env = dir, environment(s.folder)
	command.ExtraFiles = append(command.ExtraFiles, s.serving)
	return command
}

// close kills the servers that run, waits for them, and removes the folder.
func (s *supervision) close() error {
	for _, file := range []*os.File{s.hold, s.serving} {
		if file != nil {
			_ = file.Close()
		}
	}
	var err error
	if s.keeper != nil {
		err = s.keeper.Wait()
	}
	for _, file := range []*os.File{s.life, s.running} {
		if file != nil {
			_ = file.Close()
		}
	}
	if left := os.RemoveAll(s.folder); left != nil { // nothing to do, unless the keeper failed
		return fmt.Errorf("remove the folder of the servers: %w", errors.Join(err, left))
	}
	return nil
}

// environment returns the environment of the servers. It has no proxy variables: the API
// server would send webhook calls to the proxy. It has no variables of etcd (ETCD_…), which
// would change its flags, and no credentials. SSL_CERT_FILE and SSL_CERT_DIR say where this
// system has its certificate authorities, GOCOVERDIR where a server built with coverage
// writes.
//
// GOGC and GOMEMLIMIT: the servers live for seconds, and their garbage collector took a tenth of
// the time of a run.
func environment(home string) []string {
	path := os.Getenv("PATH")
	if path != "" {
		path += string(os.PathListSeparator)
	}
	env := []string{"PATH=" + path + "/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "GOGC=400", "GOMEMLIMIT=1GiB"}
	for _, name := range []string{"GOCOVERDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		value, ok := os.LookupEnv(name)
		if absolute, err := filepath.Abs(value); ok && err == nil && name == "GOCOVERDIR" && value != "" {
			value = absolute // the servers have another working directory
		}
		if ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
