package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/report"
)

func (a *app) reportCommand() *cobra.Command {
	return parent("report", "Work with the reports of runs", a.reportHTMLCommand(), a.reportDiffCommand(), a.reportMergeCommand(), a.reportMatrixCommand(), a.reportBadgeCommand(), a.reportVerifyCommand())
}

// readReport is report.Read. Its error has the exit code exitUsage.
func readReport(path string) (report.Report, error) {
	r, err := report.Read(path)
	if err != nil {
		return r, usagef("%w", err)
	}
	return r, nil
}

// ofReport makes a command that reads one report.
func (a *app) ofReport(command *cobra.Command, do func(input report.Input) error) *cobra.Command {
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s takes one DIR or FILE; got %d arguments", command.CommandPath(), len(args))
		}
		return a.reading(func(context.Context, []string) error {
			r, err := readReport(args[0])
			if err != nil {
				return err
			}
			return do(report.Input{File: args[0], Report: r})
		})(command, args)
	}
	return command
}

// readReports reads several reports.
func readReports(paths []string) (all []report.Input, err error) {
	var errs []error
	for _, path := range paths {
		r, err := readReport(path)
		all, errs = append(all, report.Input{File: path, Report: r}), append(errs, err)
	}
	return all, errors.Join(errs...)
}

func (a *app) reportHTMLCommand() *cobra.Command {
	return a.ofReport(&cobra.Command{
		Use:   "html DIR|FILE",
		Short: "Write report.html from report.json",
		Long: `Write report.html beside the report.json of a run, and print its path. The page is one
file, which needs no network.`,
		Example: "  admissiontest run --report out; admissiontest report html out",
	}, a.reportHTML)
}

// reportHTML implements the command report html.
func (a *app) reportHTML(input report.Input) error {
	dir := input.File
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	if err := report.SaveHTML(dir, input.Report); err != nil {
		return usagef("%w", err)
	}
	_, err := fmt.Fprintln(a.Stdout, filepath.Join(dir, report.HTMLFile))
	return err
}

func (a *app) reportDiffCommand() *cobra.Command {
	var out outputFlag
	command := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Compare the reports of two runs",
		Long: `Compare the reports of two runs, for example of two versions or of two servers: print what
differs between the servers, and the scenarios whose verdict changed, the new ones, and the
removed ones, with the reasons. BEFORE and AFTER are folders of reports, or their report.json files.

The exit code is 1 if a MUST that did not fail in BEFORE fails in AFTER.`,
		Example: "  admissiontest report diff yesterday today",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%s takes BEFORE and AFTER; got %d arguments", command.CommandPath(), len(args))
			}
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			return a.reading(func(_ context.Context, args []string) error { return a.reportDiff(args, asJSON) })(command, args)
		},
	}
	out.add(command)
	return command
}

// reportDiff implements the command report diff.
func (a *app) reportDiff(args []string, asJSON bool) error {
	inputs, err := readReports(args)
	if err != nil {
		return err
	}
	before, after := inputs[0], inputs[1]
	diff := report.Compare(before.Report, after.Report)
	diff.Before.File, diff.After.File = before.File, after.File
	if asJSON {
		err = report.WriteDiffJSON(a.Stdout, diff)
	} else {
		err = report.WriteDiff(a.Stdout, diff)
	}
	if err == nil && diff.Worse() {
		err = withCode(exitFail, nil)
	}
	return err
}

func (a *app) reportMergeCommand() *cobra.Command {
	var out outputFlag
	var cluster clusterFlags
	var to reportFlag
	verbose := false
	command := &cobra.Command{
		Use:   "merge DIR|FILE ...",
		Short: "Merge the reports of shards into the report of one run",
		Long: `Merge the reports of all shards of a run (run --shard) into one report, print it, and exit
with the exit code of the whole run.`,
		Example: "  admissiontest report merge shard-1 shard-2 --report out",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes the folders of reports; got none", command.CommandPath())
			}
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			return a.reading(func(ctx context.Context, args []string) error {
				save, err := to.open(ctx, &cluster)
				if err != nil {
					return err
				}
				merged, err := a.reportMerge(args, to.dir, asJSON, verbose)
				if save != nil && merged != nil {
					err = errors.Join(save(ctx, *merged), err)
				}
				return err
			})(command, args)
		},
	}
	out.add(command)
	cluster.add(command)
	to.add(command)
	command.Flags().BoolVarP(&verbose, "verbose", "v", false, "print a line for each scenario, and complete timelines")
	return command
}

// reportMerge implements the command report merge. It returns the merged report, or nil if there is none.
func (a *app) reportMerge(args []string, dir string, asJSON, verbose bool) (*report.Report, error) {
	if err := makeReportDir(dir); err != nil {
		return nil, err
	}
	inputs, err := readReports(args)
	if err != nil {
		return nil, err
	}
	merged, err := report.Merge(inputs)
	if err != nil {
		return nil, usagef("%w", err)
	}
	err = a.writeReport(merged, dir, asJSON, verbose)
	switch code := merged.ExitCode(merged.Strict); {
	case err != nil:
		return &merged, err
	case code == exitPass && merged.Incomplete == "":
		return &merged, nil
	case code == exitPass:
		return &merged, withCode(exitInfrastructure, nil)
	default:
		return &merged, withCode(code, nil)
	}
}

// writeReport writes a report to the folder, unless it is "", and to standard output.
func (a *app) writeReport(r report.Report, dir string, asJSON, verbose bool) error {
	var errs []error
	if dir != "" {
		errs = append(errs, report.SaveDir(dir, r))
	}
	if asJSON {
		errs = append(errs, report.WriteJSON(a.Stdout, r))
	} else {
		errs = append(errs, report.WriteConsole(a.Stdout, r, report.ConsoleOptions{Verbose: verbose, Color: a.color(a.Stdout), Strict: r.Strict}))
	}
	return errors.Join(errs...)
}

// makeReportDir makes the folder of a report, and checks that files can be written to it. It is
// called before the run, so that an error does not waste the run.
func makeReportDir(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, report.DirMode); err != nil {
		return usagef("--report: %w", err)
	}
	file, err := os.CreateTemp(dir, ".writable.*")
	if err != nil {
		return usagef("--report: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// summarize adds a report to the summary of a job of GitHub Actions. An error of it does not change the exit code.
func (a *app) summarize(r report.Report) error {
	name := a.env("GITHUB_STEP_SUMMARY")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the runner names it
	if err != nil {
		return fmt.Errorf("write job summary: %w", err)
	}
	return errors.Join(report.WriteMarkdown(file, r), file.Close())
}
