package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Exit codes of the process, which are frozen.
const (
	// exitPass: every selected MUST passed, or the command succeeded.
	exitPass = report.ExitPass
	// exitFail: a requirement failed.
	exitFail = report.ExitFail
	// exitUsage: an unknown command, flag or name, or a wrong file, for example a manifest that an API
	// server refuses as invalid.
	exitUsage = report.ExitUsage
	// exitNothing: no scenario was selected, or no selected scenario passed or could be judged.
	exitNothing = report.ExitNothing
	// exitInfrastructure: no server, no assets, or a lost connection.
	exitInfrastructure = report.ExitError
	// exitInconclusive: the run could not decide whether a MUST holds.
	exitInconclusive = report.ExitInconclusive
	// exitInterrupted: the command was interrupted. It cleaned up before it ended, unless
	// it was interrupted twice.
	exitInterrupted = 130
)

// coded is an error with an exit code.
type coded struct {
	code  int
	cause error
}

// Error returns the text of the cause.
func (e *coded) Error() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.Error()
}

// Unwrap returns the cause.
func (e *coded) Unwrap() error { return e.cause }

// withCode returns an error with an exit code and the text of its cause. If the cause is nil, nothing is
// printed: the report has the reason.
func withCode(code int, cause error) error { return &coded{code, cause} }

// usagef returns an error with the exit code exitUsage.
func usagef(format string, arguments ...any) error {
	return withCode(exitUsage, fmt.Errorf(format, arguments...))
}

// codeOf returns the exit code for the error that a command returned.
func codeOf(err error) int {
	var known *coded
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &known):
		return known.code
	case errors.Is(err, engine.ErrUnknownName), len(scenario.Errors(err)) > 0,
		errors.Is(err, binaries.ErrBadVersion), errors.Is(err, binaries.ErrBadIndex), errors.Is(err, binaries.ErrUnsupportedVersion), errors.Is(err, binaries.ErrNoSuchVersion), errors.Is(err, binaries.ErrBadPlugin),
		errors.Is(err, providers.ErrImageNeeded):
		return exitUsage
	case errors.Is(err, engine.ErrNothingSelected):
		return exitNothing
	default:
		return exitInfrastructure
	}
}

// printError writes an error, one line for each cause. It replaces text that looks like a secret.
func printError(w io.Writer, err error) {
	for _, cause := range causes(err) {
		if text := strings.TrimSpace(redact.Text(cause.Error())); text != "" {
			_, _ = fmt.Fprintf(w, "admissiontest: %s\n", strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
}

// causes returns the errors that were joined into one.
func causes(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // errors.As would find only one of the joined errors
		var all []error
		var texts []string
		for _, one := range joined.Unwrap() {
			all = append(all, causes(one)...)
			texts = append(texts, one.Error())
		}
		if strings.Join(texts, "\n") == err.Error() {
			return all
		}
	}
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		return causes(inner)
	}
	return []error{err}
}
