package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Exit codes of the process.
const (
	// ExitPass: every selected MUST passed, or the command succeeded.
	ExitPass = report.ExitPass
	// ExitFail: a requirement failed.
	ExitFail = report.ExitFail
	// ExitUsage: an unknown command, flag or name, or a bad file, also one that an API server
	// refuses.
	ExitUsage = report.ExitUsage
	// ExitNothing: no scenario is selected, or nothing of the selection passed or could be
	// judged.
	ExitNothing = report.ExitNothing
	// ExitInfrastructure: no server, no assets, or a lost connection.
	ExitInfrastructure = report.ExitError
	// ExitInconclusive: the run could not decide whether a MUST holds.
	ExitInconclusive = report.ExitInconclusive
	// ExitInterrupted: the command was interrupted. It cleaned up before it ended, unless
	// it was interrupted twice.
	ExitInterrupted = 130
)

// exit is an error with an exit code. Without a cause nothing is printed: the report has
// the reason.
type exit struct {
	code  int
	cause error
}

// Error returns the text of the cause.
func (e *exit) Error() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.Error()
}

// Unwrap returns the cause.
func (e *exit) Unwrap() error { return e.cause }

// usage returns an error with ExitUsage.
func usage(format string, arguments ...any) error {
	return &exit{ExitUsage, fmt.Errorf(format, arguments...)}
}

// codeOf returns the exit code for the error that a command returned.
func codeOf(err error) int {
	var known *exit
	switch {
	case err == nil:
		return ExitPass
	case errors.As(err, &known):
		return known.code
	case errors.Is(err, engine.ErrUnknownName), len(scenario.Errors(err)) > 0,
		errors.Is(err, assets.ErrBadVersion), errors.Is(err, assets.ErrUnsupportedVersion), errors.Is(err, assets.ErrNoSuchVersion), errors.Is(err, assets.ErrBadPlugin),
		errors.Is(err, providers.ErrImageNeeded):
		return ExitUsage
	case errors.Is(err, engine.ErrNothingSelected):
		return ExitNothing
	default:
		return ExitInfrastructure
	}
}

// printError writes an error, one line for each cause.
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
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // errors.As would return one error only
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
