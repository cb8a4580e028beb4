package exit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

func TestCode(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		nil:                               Pass,
		errors.New("anything"):            Infrastructure,
		New(Fail, nil):                    Fail,
		New(Inconclusive, errors.New("")): Inconclusive,
		Usagef("--level %q", "x"):         Usage,
		errors.Join(errors.New("close"), Usagef("no")):  Usage,
		fmt.Errorf("run: %w", engine.ErrUnknownName):    Usage,
		fmt.Errorf("run: %w", binaries.ErrBadPlugin):    Usage,
		fmt.Errorf("run: %w", providers.ErrImageNeeded): Usage,
		engine.ErrNothingSelected:                       Nothing,
	} {
		t.Run(fmt.Sprint(err), func(t *testing.T) {
			if got := Code(err); got != want {
				t.Errorf("the exit code of %v is %d, want %d", err, got, want)
			}
		})
	}
}

// Each cause is on its own line, without what looks like a secret. An error without a cause prints nothing.
func TestPrint(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"": New(Fail, nil),
		"admissiontest: one\nadmissiontest: two\n  more\n":  errors.Join(Usagef("one"), New(Fail, errors.New("two\nmore"))),
		"admissiontest: run: one\n  two\n":                  fmt.Errorf("run: %w", errors.Join(errors.New("one"), errors.New("two"))),
		"admissiontest: Authorization: Bearer (redacted)\n": errors.New("Authorization: Bearer abcdefgh12345678"),
	} {
		t.Run(want, func(t *testing.T) {
			var out strings.Builder
			if Print(&out, err); out.String() != want {
				t.Errorf("printed %q, want %q", out.String(), want)
			}
		})
	}
}
