package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		nil:                     exitPass,
		errors.New("anything"):  exitInfrastructure,
		withCode(exitFail, nil): exitFail,
		withCode(exitInconclusive, errors.New("")):      exitInconclusive,
		usagef("--level %q", "x"):                       exitUsage,
		errors.Join(errors.New("close"), usagef("no")):  exitUsage,
		fmt.Errorf("run: %w", engine.ErrUnknownName):    exitUsage,
		fmt.Errorf("run: %w", binaries.ErrBadPlugin):    exitUsage,
		fmt.Errorf("run: %w", providers.ErrImageNeeded): exitUsage,
		engine.ErrNothingSelected:                       exitNothing,
	} {
		t.Run(fmt.Sprint(err), func(t *testing.T) {
			if got := codeOf(err); got != want {
				t.Errorf("the exit code of %v is %d, want %d", err, got, want)
			}
		})
	}
}

// Each cause is on its own line, without what looks like a secret. An error without a cause prints nothing.
func TestPrintError(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"": withCode(exitFail, nil),
		"admissiontest: one\nadmissiontest: two\n  more\n":  errors.Join(usagef("one"), withCode(exitFail, errors.New("two\nmore"))),
		"admissiontest: run: one\n  two\n":                  fmt.Errorf("run: %w", errors.Join(errors.New("one"), errors.New("two"))),
		"admissiontest: Authorization: Bearer (redacted)\n": errors.New("Authorization: Bearer abcdefgh12345678"),
	} {
		t.Run(want, func(t *testing.T) {
			var out strings.Builder
			if printError(&out, err); out.String() != want {
				t.Errorf("printed %q, want %q", out.String(), want)
			}
		})
	}
}
