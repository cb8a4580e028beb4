package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/report/html"
)

func (a *app) reportCommand() *cobra.Command {
	return parent("report", "Work with the reports of runs", a.reportGetCommand(), a.reportMergeCommand(), a.reportMatrixCommand(), a.reportVerifyCommand(), a.reportKnownFailingCommand())
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
func (a *app) ofReport(command *cobra.Command, do func(r report.Report) error) *cobra.Command {
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s takes one DIR or FILE; got %d arguments", command.CommandPath(), len(args))
		}
		return a.reading(func(context.Context, []string) error {
			r, err := readReport(args[0])
			if err != nil {
				return err
			}
			return do(r)
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

func (a *app) reportMergeCommand() *cobra.Command {
	var out outputFlag
	var cluster clusterFlags
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
				return usagef("%s takes the folders of reports; got none", command.CommandPath())
			}
			asJSON, err := out.json()
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
	out.add(command)
	cluster.add(command)
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
		return usagef("--report: %w", err)
	}
	file, err := os.CreateTemp(dir, ".writable.*")
	if err != nil {
		return usagef("--report: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
