package envtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"al.essio.dev/pkg/shellescape"

	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// keeper waits until this process has closed the pipe (file 3) or ended. Then it kills the process groups of all servers,
// and removes the folder $1. A server that is killed can still write for a moment, so that a folder is not empty.
//
// It renames the folder first: a starter that begins later cannot note its process group, and ends.
const keeper = `trap "" HUP INT QUIT TERM
read -r line <&3
mv -- "$1" "$1.end" || exit 0
for group in "$1.end/running"/*; do kill -s KILL -- "-${group##*/}"; done
until rm -rf -- "$1.end"; do sleep 1; done`

// starter notes its process group in the folder $1, starts the server "$@", waits for it, and writes its exit code to
// the file $2.status. It is what controller-runtime starts, and the first process of its group.
//
// The standard error is the server's own: the starter keeps it open (file 5) until it has written the exit code.
const starter = `folder=$1 name=$2; shift 2
exec 5>&2 2>/dev/null
: >"$folder/running/$$" || exit
trap : TERM
"$@" >/dev/null 2>&5 5>&-
echo $? >"$folder/$name.status"
rm -f -- "$folder/running/$$"`

// supervision ties servers and their folder to this process. If this process ends without
// close, even by SIGKILL, the kernel closes its files; then the servers are killed and the
// folder is removed.
type supervision struct {
	folder     string
	life, hold *os.File // the read and the write end of the keeper's pipe
	keeper     *exec.Cmd
	cutting    sync.Once
}

// supervise makes a folder that only this user can read. Its keeper runs before the folder
// exists, so there is no moment at which the folder can be left.
func supervise() (_ *supervision, err error) {
	parent, err := userfile.TempDir()
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
	s.keeper = exec.CommandContext(context.Background(), processes.Shell, "-c", keeper, processes.Shell, s.folder)
	s.keeper.Env, s.keeper.ExtraFiles = environment("/"), []*os.File{s.life}
	processes.Detach(s.keeper)
	if err := s.keeper.Start(); err != nil {
		s.keeper = nil
		return nil, fmt.Errorf("start a shell: %w", err)
	}
	for _, folder := range []string{s.folder, s.running()} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, fmt.Errorf("make a folder for the servers: %w; set TMPDIR to a directory that you can write to", err)
		}
	}
	return s, nil
}

// running is the folder in which each starter notes its process group.
func (s *supervision) running() string { return filepath.Join(s.folder, "running") }

// program is a program that is started under supervision.
type program struct {
	name, path string
	dir        string   // its working directory
	variables  []string // of its environment, besides the variables of all servers
	arguments  []string // at the end of its command line
}

// wrap writes a script that starts a program under supervision, and returns its path. controller-runtime runs
// the script. It asks for --help first, to look for flags that this package sets or that no supported version has:
// the script prints nothing.
func (s *supervision) wrap(p program) (string, error) {
	command := slices.Concat([]string{"/usr/bin/env", "-i"}, environment(s.folder), p.variables,
		[]string{processes.Shell, "-c", starter, processes.Shell, s.folder, p.name, p.path})
	script := fmt.Sprintf("#!%s\n[ \"$*\" != --help ] || exit 0\ncd -- %s && exec %s \"$@\" %s\n",
		processes.Shell, shellescape.Quote(p.dir), shellescape.QuoteCommand(command), shellescape.QuoteCommand(p.arguments))
	path := filepath.Join(s.folder, p.name)
	// A process that another goroutine starts meanwhile would have the file open until it executes its program, and nothing can
	// execute a file that is open for writing (https://go.dev/issue/22315).
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(script), 0o700) //nolint:gosec // it is a program
	syscall.ForkLock.RUnlock()
	if err != nil {
		return "", fmt.Errorf("write the script that starts %s: %w", p.name, err)
	}
	return path, nil
}

// terminate sends SIGTERM to the servers that run.
func (s *supervision) terminate() {
	groups, _ := os.ReadDir(s.running()) // none runs if there is no folder
	for _, entry := range groups {
		if group, err := strconv.Atoi(entry.Name()); err == nil {
			_ = processes.Terminate(&os.Process{Pid: group}) // it can have ended
		}
	}
}

// cut kills the servers that run, and those that would start later, and removes the folder.
func (s *supervision) cut() {
	s.cutting.Do(func() { _ = s.hold.Close() })
}

// close is cut, and waits for its end.
func (s *supervision) close() error {
	s.cut()
	var err error
	if s.keeper != nil {
		err = s.keeper.Wait()
	}
	_ = s.life.Close()
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
