package processes

import (
	"context"
	"os"
	"os/exec"
)

// Shell runs the script of a Guarded command. Every POSIX system has it at this path.
const Shell = "/bin/sh"

// script starts a program so that it is killed when this process ends. The shell starts a guard
// and becomes the program (exec), so this process starts, signals and waits for the program
// itself. $1 is a folder to remove, or empty.
//
// The guard reads file 3, a pipe that only this process can write to. It blocks until this
// process closes the pipe or ends. Then it removes the folder and kills its process group: the
// program, processes that the program started, and itself. A group has one number as long as it
// has a process.
const script = `folder=$1; shift
(trap "" HUP INT QUIT TERM; read -r line <&3; [ -z "$folder" ] || rm -rf -- "$folder"; kill -s KILL 0) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&-`

// GuardOptions configure a Guarded command. Life and Path are required.
type GuardOptions struct {
	// Life is the read end of a pipe. The program is killed when the write end is closed, which
	// no other process must have.
	Life *os.File
	// Folder is removed when the program is killed. Empty removes none.
	Folder string
	// Path is the program, Arguments are its arguments.
	Path      string
	Arguments []string
}

// Guarded returns the command of a program that is killed, with all of its process group, when
// this process ends. It is not started.
func Guarded(options GuardOptions) *exec.Cmd {
	arguments := append([]string{"-c", script, Shell, options.Folder, options.Path}, options.Arguments...)
	command := exec.CommandContext(context.Background(), Shell, arguments...)
	command.ExtraFiles = []*os.File{options.Life}
	Detach(command)
	return command
}
