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
	"sync"
	"syscall"

	"al.essio.dev/pkg/shellescape"
	"golang.org/x/sys/unix"

	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// keeper removes the folder $1 when this process has closed the pipe (file 3) or ended, and
// after that all servers and guards, which hold the other end of file 4, have ended.
//
// A guard that opens the FIFO life waits until another process opens it for writing. So the keeper opens it
// too, and removes it before it closes it: a guard that comes later finds no FIFO, and does not wait.
const keeper = `trap "" HUP INT QUIT TERM
read -r line <&3
exec 5<>"$1/life"
rm -f -- "$1/life"
exec 5>&-
read -r line <&4
rm -rf -- "$1"`

// starter makes the file $2.status in the folder $1, starts the server "$@" with a guard, waits for it, and writes its
// exit code to the file. The guard waits at the FIFO life until this process closes it or ends. Then it
// kills its process group: the server, processes that the server started, the starter and itself.
//
// The starter is what controller-runtime starts, signals and waits for. Its standard output is for the keeper: it
// ends when the server, the guard and the starter have ended. The standard error is the server's own: the starter
// keeps it open (file 5) until it has written the exit code.
//
// SIGTERM interrupts wait, which then is repeated. Its result 127 means that the exit code was returned before. The
// server can get the signal twice: controller-runtime sends it to the group since 0.24.
const starter = `folder=$1 status=$1/$2.status; shift 2
: >"$status"
(trap "" HUP INT QUIT TERM; read -r line <"$folder/life"; kill -s KILL 0) </dev/null 2>/dev/null &
trap 'asked=1; [ -z "$server" ] || kill -s TERM "$server"' TERM
"$@" 3>&1 >/dev/null &
server=$!
exec 5>&2 2>/dev/null
wait "$server"; code=$?
while [ "$asked" ]; do asked=; wait "$server"; again=$?; [ "$again" = 127 ] || code=$again; done
echo "$code" >"$status"`

// supervision ties servers and their folder to this process. If this process ends without
// close, even by SIGKILL, the kernel closes its files; then the servers are killed and the
// folder is removed. Nothing polls.
type supervision struct {
	folder string

	life, hold       *os.File // the read and the write end of the pipe of this process
	fifo             *os.File // the write end of the FIFO of the guards
	running, serving *os.File // the read and the write end of the pipe of the servers
	keeper           *exec.Cmd
	cutting          sync.Once
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
	if s.running, s.serving, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	s.keeper = exec.CommandContext(context.Background(), processes.Shell, "-c", keeper, processes.Shell, s.folder)
	s.keeper.Env, s.keeper.ExtraFiles = environment("/"), []*os.File{s.life, s.running}
	processes.Detach(s.keeper)
	if err := s.keeper.Start(); err != nil {
		s.keeper = nil
		return nil, fmt.Errorf("start a shell: %w", err)
	}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the servers: %w; set TMPDIR to a directory that you can write to", err)
	}
	life := filepath.Join(s.folder, "life")
	if err := unix.Mkfifo(life, 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", life, err)
	}
	if s.fifo, err = os.OpenFile(life, os.O_RDWR, 0); err != nil { // for writing only, it would wait for a guard
		return nil, err
	}
	return s, nil
}

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

// cut kills the servers that run, and those that would start later.
func (s *supervision) cut() {
	s.cutting.Do(func() { closeAll(s.fifo, s.hold) })
}

// process returns the process of a program. When it has ended, ended is called.
func (s *supervision) process(name string, ended func(*process)) *process {
	p := &process{name: name, status: filepath.Join(s.folder, name+".status"), ended: ended}
	p.stderr.First, p.stderr.Last = outputSize, outputSize
	return p
}

// close kills the servers that run, waits for them, and removes the folder.
func (s *supervision) close() error {
	s.cut()
	closeAll(s.serving)
	var err error
	if s.keeper != nil {
		err = s.keeper.Wait()
	}
	closeAll(s.life, s.running)
	if left := os.RemoveAll(s.folder); left != nil { // nothing to do, unless the keeper failed
		return fmt.Errorf("remove the folder of the servers: %w", errors.Join(err, left))
	}
	return nil
}

// closeAll closes files, of which some can be nil.
func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
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
