package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/flags"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/report/html"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

func (a *app) reportCommand() *cobra.Command {
	return parent("report", "Work with the reports of runs", a.reportGetCommand(), a.reportHTMLCommand(), a.reportDiffCommand(), a.reportMergeCommand(), a.reportMatrixCommand(), a.reportBadgeCommand(), a.reportVerifyCommand(), a.reportKnownFailingCommand())
}

func (a *app) reportHTMLCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "html DIR|FILE",
		Short: "Write report.html from report.json",
		Long: `Write report.html beside the report.json of a run, and print its path. The page is one
file, which needs no network.`,
		Example: "  admissiontest run --report out; admissiontest report html out",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("%s takes one DIR or FILE; got %d arguments", command.CommandPath(), len(args))
			}
			return a.reading(a.reportHTML)(command, args)
		},
	}
}

// reportHTML implements the command report html.
func (a *app) reportHTML(_ context.Context, args []string) error {
	r, err := readReport(args[0])
	if err != nil {
		return err
	}
	dir := args[0]
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	if err := html.Save(dir, r); err != nil {
		return exit.Usagef("%w", err)
	}
	_, err = fmt.Fprintln(a.Stdout, filepath.Join(dir, html.File))
	return err
}

// readReport is report.Read. Its error has the exit code exit.Usage.
func readReport(path string) (report.Report, error) {
	r, err := report.Read(path)
	if err != nil {
		return r, exit.Usagef("%w", err)
	}
	return r, nil
}

const formatHTML = "html"

func (a *app) reportDiffCommand() *cobra.Command {
	format := flags.Text
	formats := []string{flags.Text, flags.JSON, formatHTML}
	command := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Compare the reports of two runs",
		Long: `Compare the reports of two runs, for example of two versions or of two servers: print what
differs between the servers, and the scenarios whose verdict changed, the new ones, and the
removed ones, by cause. BEFORE and AFTER are folders of reports, or their report.json files.

The exit code is 1 if a MUST that did not fail in BEFORE fails in AFTER.`,
		Example: "  admissiontest report diff yesterday today\n  admissiontest report diff v1.35 v1.36 -o html > diff.html",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Usagef("%s takes BEFORE and AFTER; got %d arguments", command.CommandPath(), len(args))
			}
			write := map[string]func(io.Writer, report.Diff) error{
				flags.Text: report.WriteDiff, flags.JSON: report.WriteDiffJSON, formatHTML: html.WriteDiff,
			}[format]
			if write == nil {
				return exit.Usagef("--output %q: want text, json or html%s", format, suggest.DidYouMean(format, formats))
			}
			return a.reading(func(_ context.Context, args []string) error { return a.reportDiff(args, write) })(command, args)
		},
	}
	command.Flags().StringVarP(&format, "output", "o", flags.Text, "format of standard output: text, json or html")
	flags.Complete(command, "output", formats...)
	return command
}

// reportDiff implements the command report diff.
func (a *app) reportDiff(args []string, write func(io.Writer, report.Diff) error) error {
	before, errBefore := readReport(args[0])
	after, errAfter := readReport(args[1])
	if err := errors.Join(errBefore, errAfter); err != nil {
		return err
	}
	diff := report.Compare(before, after)
	diff.Before.File, diff.After.File = args[0], args[1]
	if err := write(a.Stdout, diff); err != nil {
		return err
	}
	if diff.Worse() {
		return exit.New(exit.Fail, nil)
	}
	return nil
}

func (a *app) reportMergeCommand() *cobra.Command {
	var out flags.Output
	var cluster flags.Cluster
	var configMap configMapFlag
	dir, verbose := "", false
	command := &cobra.Command{
		Use:   "merge DIR|FILE ...",
		Short: "Merge the reports of shards into the report of one run",
		Long: `Merge the reports of all shards of a run (run --shard) into one report, print it, and exit
with the exit code of the whole run. You can also merge reports of several runs without
shards, if they are of the same server and have no scenario in common.`,
		Example: "  admissiontest report merge shard-1 shard-2 --report out",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("%s takes the folders of reports; got none", command.CommandPath())
			}
			asJSON, err := out.JSON()
			if err != nil {
				return err
			}
			return a.reading(func(ctx context.Context, args []string) error {
				save, err := configMap.open(ctx, &cluster)
				if err != nil {
					return err
				}
				merged, err := a.reportMerge(args, dir, asJSON, verbose)
				if save != nil && merged != nil {
					err = errors.Join(save(ctx, *merged), err)
				}
				return err
			})(command, args)
		},
	}
	out.Add(command)
	cluster.Add(command)
	configMap.add(command)
	command.Flags().StringVar(&dir, "report", "", "write report.json, junit.xml and report.html to this folder")
	command.Flags().BoolVarP(&verbose, "verbose", "v", false, "print a line for each scenario, and complete timelines")
	_ = command.MarkFlagDirname("report")
	return command
}

// reportMerge implements the command report merge. It returns the merged report, or nil if there is none.
func (a *app) reportMerge(args []string, dir string, asJSON, verbose bool) (*report.Report, error) {
	if err := makeReportDir(dir); err != nil {
		return nil, err
	}
	var inputs []report.Input
	var errs []error
	for _, path := range args {
		r, err := readReport(path)
		inputs, errs = append(inputs, report.Input{File: path, Report: r}), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	merged, err := report.Merge(inputs)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	err = a.writeReport(merged, dir, asJSON, verbose)
	switch code := merged.ExitCode(merged.Strict); {
	case err != nil:
		return &merged, err
	case code == exit.Pass && merged.Incomplete == "":
		return &merged, nil
	case code == exit.Pass:
		return &merged, exit.New(exit.Infrastructure, nil)
	default:
		return &merged, exit.New(code, nil)
	}
}

// writeReport writes a report to the folder, unless it is "", and to standard output.
func (a *app) writeReport(r report.Report, dir string, asJSON, verbose bool) error {
	var errs []error
	if dir != "" {
		errs = append(errs, report.SaveDir(dir, r), html.Save(dir, r))
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
		return exit.Usagef("--report: %w", err)
	}
	file, err := os.CreateTemp(dir, ".writable.*")
	if err != nil {
		return exit.Usagef("--report: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
