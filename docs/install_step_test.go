package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// release is a script that makes release v0.1.0, whose command is the word released, and damages it. Then curl copies its files,
// and make writes its arguments to a file.
const release = `cd "$RUNNER_TEMP"; mkdir -p releases/v0.1.0
(
  cd releases/v0.1.0; echo released >admissiontest
  tar -czf "$ARCHIVE" admissiontest; rm admissiontest
  { sha256sum * || shasum -a 256 *; } >checksums.txt
  eval "$DAMAGE"
)
curl() { cp "releases/${6##*/download/}" "$5" 2>/dev/null; } # -fsSL --retry 3 -o FILE URL
make() { echo "$*" >made; }
`

// The first step of the action installs a release only if its archive has the right digest. It builds what has no release from
// the source of the action, and refuses a version that has neither.
func TestInstallStep(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	install := readAction(t).Runs.Steps[0].Run
	const own, checkout = "-C DIR/action/../../.. build", "-C DIR/workspace build"
	for name, test := range map[string]struct{ version, ref, damage, does, prints string }{
		"release of the action": {ref: "v0.1.0", does: "released"},
		"release by name":       {version: "v0.1.0", ref: "main", does: "released"},
		"changed archive":       {ref: "v0.1.0", damage: `echo more >>"$ARCHIVE"`, prints: "FAILED"},
		"not in checksums.txt":  {ref: "v0.1.0", damage: "echo '<html>' >checksums.txt"},
		"no archive":            {ref: "v0.1.0", damage: `rm "$ARCHIVE"`},
		"branch":                {ref: "main", does: own},
		"tag without release":   {ref: "v0.2.0", does: own},
		"local action":          {does: own},
		"checkout":              {version: "checkout", does: checkout},
		"no such release":       {version: "v0.2.0", ref: "main", prints: "::error::admissiontest has no release v0.2.0"},
		"no version":            {version: "../v0.1.0", ref: "main", prints: "::error::"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			step := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", release+install)
			step.Env = append(os.Environ(), "RUNNER_TEMP="+root, "GITHUB_PATH="+root+"/path", "GITHUB_WORKSPACE="+root+"/workspace",
				"GITHUB_ACTION_PATH="+root+"/action", "VERSION="+test.version, "ACTION_REF="+test.ref, "DAMAGE="+test.damage,
				fmt.Sprintf("ARCHIVE=admissiontest_0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH))
			output, err := step.CombinedOutput()
			installed, _ := os.ReadFile(filepath.Join(root, "admissiontest-bin", "admissiontest"))
			made, _ := os.ReadFile(filepath.Join(root, "made"))
			does, _, _ := strings.Cut(strings.ReplaceAll(string(installed)+string(made), root, "DIR"), " BIN=")
			if strings.TrimSpace(does) != test.does || (err == nil) != (test.does != "") || !strings.Contains(string(output), test.prints) {
				t.Errorf("the step did %q and ended with %v, want %q and %q:\n%s", does, err, test.does, test.prints, output)
			}
		})
	}
}
