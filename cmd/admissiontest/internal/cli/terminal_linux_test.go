package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// hostileTexts are a scenario and a file that is wrong. Their texts have control characters, escaped and as
// they are.
func hostileTexts(t *testing.T) (dir, wrong string) {
	t.Helper()
	good := strings.Replace(scenarioFile("mine.hostile", "MUST", "refused"), "The requirement of mine.hostile.",
		`"red \e[31m, title \e]0;t\a, C1 \x9b31m, reversed \u202e, ::error::x"`+" # \u202e\u2066", 1)
	bad := strings.Replace(scenarioFile("mine.wrong", "MUST", "fine"), "  since:", `  "a\e[31m\u202e": x`+"\n  since:", 1)
	dir = write(t, map[string]string{"good/hostile.yaml": strings.ReplaceAll(good, "\n", "\r\n"), "wrong.yaml": bad})
	return filepath.Join(dir, "good"), filepath.Join(dir, "wrong.yaml")
}

// No command prints a control character that a scenario has, neither to a file nor to a terminal, where the
// codes of our own colours remain.
func TestControlCharacters(t *testing.T) {
	good, wrong := hostileTexts(t)
	for _, args := range [][]string{
		{"explain", good}, {"list", "--wide", good}, {"list", "-o", "json", good}, {"list", wrong},
		{"explain", "a\x1b[31m\u202e"}, {"run", good + "\x1b[31m"}, {"run", good}, {"run", "-o", "json", good},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := execute(t.Context(), &fake{}, args...)
			noControl(t, got.stdout+got.stderr)
			noControl(t, onTerminal(t, args...))
		})
	}
}

// noControl fails the test if a string has control characters except line ends and our colours.
func noControl(t *testing.T, text string) {
	t.Helper()
	own := strings.NewReplacer("\r\n", "\n", redact.Colored(redact.Red, "fail"), "fail",
		redact.Colored(redact.Red, "FAIL"), "FAIL")
	if text = own.Replace(text); text != redact.Printable(text) {
		t.Errorf("got control characters:\n%q", text)
	}
	if strings.Contains(text, "\n::") {
		t.Errorf("got a command of GitHub Actions:\n%q", text)
	}
}

// onTerminal runs a command line whose output is a terminal, and returns what the terminal gets.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // it ends with EIO
		read <- string(text)
	}()
	a := &app{
		Process:   Process{Stdin: strings.NewReader(""), Stdout: terminal, Stderr: terminal, Env: []string{"TERM=xterm"}},
		catalogue: fixture(), provider: &fake{},
	}
	a.main(context.WithoutCancel(t.Context()), args)
	if err := terminal.Close(); err != nil {
		t.Error(err)
	}
	return <-read
}
