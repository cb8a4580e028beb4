package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/admissiontest/admissiontest/internal/report"
)

// github annotates the lines of scenarios that failed or could not be judged, in GitHub Actions. It writes the annotations to standard error, which GitHub reads as it reads standard output, and
// the summary of the job. Nothing of it changes the exit code.
func (a *app) github(r report.Report) error {
	err := report.WriteAnnotations(a.raw, r, a.inRepository)
	if summary := a.env("GITHUB_STEP_SUMMARY"); summary != "" {
		err = errors.Join(err, appendMarkdown(summary, r))
	}
	return err
}

// appendMarkdown adds a report to the summary of a job.
func appendMarkdown(name string, r report.Report) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the runner names it
	if err != nil {
		return fmt.Errorf("write job summary: %w", err)
	}
	return errors.Join(report.WriteMarkdown(file, r), file.Close())
}

// inRepository returns the path of a scenario's file from the root of the repository, or "" if it is not
// there: the files of the catalogue are in the command.
func (a *app) inRepository(o report.Outcome) string {
	root := a.env("GITHUB_WORKSPACE")
	if root == "" || o.File == "" {
		return ""
	}
	file, err := filepath.Abs(o.File)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	inside, err := filepath.Rel(root, file)
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return ""
	}
	return filepath.ToSlash(inside)
}
