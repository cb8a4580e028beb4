package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/flags"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/policymutants"
	"github.com/admissiontest/admissiontest/internal/program"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/report/html"
	"github.com/admissiontest/admissiontest/internal/target"
)

// runFlags are the flags of the command run.
type runFlags struct {
	set               *pflag.FlagSet
	output            flags.Output
	selection         flags.Selection
	target            flags.Target
	endpoints         flags.Endpoints
	install           flags.Install
	shard             flags.Shard
	failOnUnsupported bool
	allowForeign      []string
	allowServerFlags  []string
	parallel          int
	patience          time.Duration
	reportDir         string
	configMap         configMapFlag
	saveToCluster     func(context.Context, report.Report) error
	strict, verbose   bool
	failFast          bool
	watch             bool
	mutants           int
	mutantSeed        uint64
	skip              []string
	knownFailing      string
	implementation    []string
	profile           string
	program           userProgram
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{selection: a.selection()}
	command := &cobra.Command{
		Use:   "run [NAME|AREA|PATTERN|FILE|DIR ...] [flags] [-- PROGRAM [ARGUMENT ...]]",
		Short: "Run scenarios and report which requirements hold",
		Long: `Run scenarios on a target and report a verdict for each.

Without arguments, the whole catalogue runs. "admissiontest list" prints each NAME; the
part of a NAME before the first dot is its AREA. A PATTERN contains * ? or [. FILE and
DIR are your own scenarios; - reads them from standard input. If a NAME or AREA is also
the name of a file, write ./NAME for the file. --only selects by name in FILE and DIR: it
also accepts the names of the cases of a PolicyTest.

PROGRAM serves your webhooks. It runs beside the scenarios, with KUBECONFIG for an
administrator of the API server (the user of the kubeconfig, on a cluster), and gets SIGTERM at
the end. Without --endpoint it is called at ` + programURL + `. In its arguments,
` + program.CertDirPlaceholder + ` is a folder with a certificate that the API server trusts: tls.crt and tls.key.`,
		Example: `  admissiontest run                                  # the catalogue, on an API server started here
  admissiontest run reinvocation 'wire.*'            # an area, and all that match a pattern
  admissiontest run my-scenarios/ --only 'owner.*'   # your own, by name
  admissiontest run my-scenarios/ --report out       # your own; writes report.json, junit.xml and report.html
  admissiontest run --kubeconfig kubeconfig --level MUST -o json
  admissiontest run my-scenarios/ --watch            # again on each save
  admissiontest run my-scenarios/ -- ./my-webhook --port 9443 --cert-dir {cert-dir}
  admissiontest run my-scenarios/ --endpoint my-system/my-webhook=https://127.0.0.1:9443 --endpoint-ca my-system/my-webhook=ca.crt`,
		ValidArgsFunction: f.selection.CompleteNames,
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		a.parsed = true
		if err := f.target.Check(command); err != nil {
			return err
		}
		if err := f.checkMutants(args); err != nil {
			return err
		}
		if f.mutants > 0 && (f.shard.Value != "" || f.watch) {
			return exit.Usagef("--mutants cannot be combined with --shard or --watch: it is about all cases of a PolicyTest")
		}
		args, program, err := cutProgram(command, args)
		if f.program.Command = program; err != nil {
			return err
		}
		return a.run(command.Context(), f, args)
	}
	f.add(command)
	groupFlags(command)
	return command
}

// cutProgram cuts the arguments of a command at "--", after which is the program that serves webhooks.
func cutProgram(command *cobra.Command, args []string) (before, program []string, err error) {
	at := command.ArgsLenAtDash()
	if at < 0 {
		return args, nil, nil
	}
	if len(args) == at {
		err = exit.Usagef("-- without a program; want -- PROGRAM [ARGUMENT ...]")
	}
	return args[:at], args[at:], err
}

// add adds the flags to a command.
func (f *runFlags) add(command *cobra.Command) {
	f.set = command.Flags()
	f.target.Add(command)
	f.target.AddPlugins(command)
	f.endpoints.Add(command)
	f.install.Add(command)
	f.shard.Add(command)
	f.selection.Add(command)
	f.output.Add(command)
	f.addOwn(command)
}

// flagGroup are flags that are about the same, in the help of run.
type flagGroup struct {
	title string
	names []string
}

// flagGroups has all flags of run.
func flagGroups() []flagGroup {
	return []flagGroup{
		{"What runs", []string{"only", "level", "skip", "profile", "shard", "install", "mutants", "mutant-seed", "watch"}},
		{"Where it runs", []string{
			"target", "k8s-version", "assets-dir", "plugin", "observe-plugins", "kubeconfig", "context", "disposable", "allow-foreign", "transport", "hook-image",
			"hook-source", "hook-address", "kind-cluster", "kind-config", "node-image", "allow-server-flags",
		}},
		{"Your webhooks", []string{"endpoint", "endpoint-ca"}},
		{"How it runs", []string{"parallel", "patience", "fail-fast"}},
		{"What fails the run", []string{"strict", "fail-on-unsupported", "known-failing"}},
		{"What it writes", []string{"output", "verbose", "report", "report-configmap", "implementation"}},
		{"Help", []string{"help"}},
	}
}

// groupFlags makes the help print the flags in groups.
func groupFlags(command *cobra.Command) {
	command.InitDefaultHelpFlag()
	var text strings.Builder
	for i, group := range flagGroups() {
		set := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		set.SortFlags = false
		for _, name := range group.names {
			if flag := command.Flags().Lookup(name); flag != nil {
				set.AddFlag(flag)
			}
		}
		fmt.Fprintf(&text, "%s:\n%s", strings.Repeat("\n", min(i, 1))+group.title, set.FlagUsages())
	}
	command.SetUsageTemplate(strings.Replace(command.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", strings.TrimSpace(text.String()), 1))
}

// addOwn adds the flags that only run has.
func (f *runFlags) addOwn(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.profile, "profile", "", "run the requirements of a profile, and say whether the API server conforms to it: "+strings.Join(engine.ProfileNames(), ", "))
	flags.Complete(command, "profile", engine.ProfileNames()...)
	set.StringSliceVar(&f.skip, "skip", nil, "do not run these: NAME, AREA or PATTERN")
	set.StringVar(&f.knownFailing, "known-failing", "", "YAML file with a line NAME: REASON for each scenario that is known to fail; if one of them passes, the run fails")
	set.StringSliceVar(&f.implementation, "implementation", nil, "describe the implementation under test in the report: KEY=VALUE,... with the keys "+strings.Join(flags.ImplementationKeys(), ", "))
	set.StringSliceVar(&f.allowForeign, "allow-foreign", nil, "namespaces that scenarios may use on an existing cluster although the run did not create them; objects that scenarios create there are removed at the end")
	set.StringSliceVar(&f.allowServerFlags, "allow-server-flags", nil, "flags of kube-apiserver that scenarios may set although they are not known to be harmless; with some, a scenario can read or write any of your files, or execute a command: see SECURITY.md")
	set.IntVar(&f.parallel, "parallel", engine.DefaultParallel, "how many scenarios run at the same time; 1 runs each without the webhooks and policies of others")
	set.DurationVar(&f.patience, "patience", engine.DefaultPatience, "how long to wait for asynchronous work of the API server: until it uses what was installed, and in a step; if given, also for the first answer of each webhook under test (default there: 30s)")
	set.StringVar(&f.reportDir, "report", "", "write report.json, junit.xml and report.html to this folder")
	f.configMap.add(command)
	set.BoolVar(&f.failFast, "fail-fast", false, "stop after the first scenario that fails the run; the remaining scenarios are skipped")
	set.IntVar(&f.mutants, "mutants", 0, "also run the cases of each PolicyTest with changes of its policies, one at a time, and report those that no case notices: at most this many")
	set.Lookup("mutants").NoOptDefVal = "100"
	set.Uint64Var(&f.mutantSeed, "mutant-seed", 1, "chooses the changes of --mutants, if there are more")
	set.BoolVar(&f.strict, "strict", false, "the run also fails if a SHOULD fails")
	set.BoolVar(&f.failOnUnsupported, "fail-on-unsupported", false, "the run also fails if a scenario of any level is unsupported")
	set.BoolVar(&f.watch, "watch", false, "run all scenarios, then after each save run those that it affects: the scenarios in the file, those that use it as a givenFile, policy or object, or all scenarios if a plugin or PROGRAM changed. Stop it with an interrupt; the exit code is that of the last run")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "print a line for each scenario, and complete timelines")
	_ = errors.Join(command.MarkFlagDirname("report"), command.MarkFlagFilename("known-failing", "yaml", "yml"), command.RegisterFlagCompletionFunc("skip", f.selection.CompleteNames))
}

// run implements the command run.
func (a *app) run(ctx context.Context, f *runFlags, args []string) error {
	if f.watch {
		return a.watch(ctx, f, args)
	}
	p, err := untilInterrupted(ctx, func() (plan, error) { return a.plan(f, args, nil) })
	if err != nil {
		return err
	}
	return a.execute(ctx, f, p, func() (display, target.Provider) {
		return f.targets(a, newDisplay(a.Stderr, len(scenario.Cases(p.options.Scenarios)), a.terminal(a.Stderr)))
	})
}

// plan is what a run is going to do.
type plan struct {
	asJSON bool
	// options has all options except the provider and the progress.
	options        engine.Options
	implementation *framework.Implementation
	shard          *report.Shard
	// profile is that of --profile, or nil.
	profile *engine.Profile
}

// claimed returns the profile of --profile, or nil, and the arguments that select its scenarios.
func (f *runFlags) claimed(args []string) (*engine.Profile, []string, error) {
	if f.profile == "" {
		return nil, args, nil
	}
	if len(args) > 0 {
		return nil, nil, exit.Usagef("--profile %s cannot be combined with %q: it selects the scenarios", f.profile, args[0])
	}
	found, err := engine.ProfileNamed(f.profile)
	if err != nil {
		return nil, nil, exit.Usagef("--profile: %w", err)
	}
	return &found, found.Selects, nil
}

// plan reads the files that a command line names. opened is called with the path of each: see
// scenario.LoadOptions.
func (a *app) plan(f *runFlags, args []string, opened func(path string)) (p plan, err error) {
	if p.asJSON, err = f.output.JSON(); err != nil {
		return p, err
	}
	if f.parallel < 1 {
		return p, exit.Usagef("--parallel %d: want a number from 1", f.parallel)
	}
	if f.patience <= 0 {
		return p, exit.Usagef("--patience %s: want more than 0", f.patience)
	}
	project, err := f.install.Project(a.note)
	if err != nil {
		return p, err
	}
	claimed, args, err := f.claimed(args)
	if err != nil {
		return p, err
	}
	selected, err := f.selection.Resolve(args, scenario.LoadOptions{Installed: project.Webhooks(), Opened: opened, AllowServerFlags: f.allowServerFlags})
	if err != nil {
		return p, err
	}
	if err := knownRules(selected); err != nil {
		return p, err
	}
	if claimed != nil {
		selected, p.profile = claimed.Keep(selected), claimed
	}
	if f.mutants > 0 && !slices.ContainsFunc(selected, scenario.Scenario.IsPolicyTest) {
		return p, exit.Usagef("--mutants is about the policies of PolicyTests, and none is selected")
	}
	if len(f.program.Command) > 0 {
		services, _ := expect.WebhookAddresses(selected, project.Objects()...)
		f.endpoints.DefaultURL = programURL
		if f.endpoints.DefaultCA, err = f.program.Certify(services); err != nil {
			return p, err
		}
	}
	if f.patience != engine.DefaultPatience {
		f.endpoints.Timeout = f.patience
	}
	endpoints, err := f.endpoints.Parse(selected, project.Objects())
	if err != nil {
		return p, err
	}
	if p.options, p.implementation, err = f.options(); err != nil {
		return p, err
	}
	if err := f.program.Check(selected, p.options.Skip); err != nil {
		return p, err
	}
	selected, p.shard, err = f.shard.Choose(selected)
	p.options.Scenarios, p.options.Install, p.options.Endpoints = selected, project, endpoints
	return p, err
}

// execute carries out a plan. The function show begins to show the progress, and returns the
// display and the provider of the targets.
func (a *app) execute(ctx context.Context, f *runFlags, p plan, show func() (display, target.Provider)) error {
	closeLog, err := f.openReport(ctx)
	if err != nil {
		return err
	}
	shown, targets := show()
	options := p.options
	running, end := context.WithCancelCause(ctx)
	began := time.Now()
	makeRoom(len(f.selection.Loaded))
	defer end(nil)
	options.Progress = shown
	if f.failFast {
		options.Progress = failFast{Progress: shown, flags: f, end: end}
	}
	f.program.Progress = shown.Line
	options.Provider = f.program.Provider(targets, end, len(options.Install.Objects()) > 0)
	result, runErr := engine.Run(running, options)
	if runErr == nil {
		runErr = f.contracts(running, options, &result)
	}
	if runErr == nil && f.mutants > 0 {
		options.Progress.Stage("running the cases with changed policies")
		result.Mutants, runErr = policymutants.Mutate(running, options, policymutants.MutateOptions{Most: f.mutants, Seed: f.mutantSeed, Before: result})
	}
	shown.Close()
	result.Timing.Total = time.Since(began).Seconds()
	result.Implementation, result.FailOnUnsupported, result.Strict = p.implementation, f.failOnUnsupported, f.strict
	result.Environment, result.Shard = thisEnvironment(began), p.shard
	if p.profile != nil {
		claim, err := p.profile.Judge(result, f.selection.Loaded)
		if err != nil {
			return errors.Join(err, closeLog())
		}
		result.Claim = &claim
	}
	result.Interrupted = runErr != nil && ctx.Err() != nil
	runErr = endedBefore(running, runErr)
	if errors.Is(runErr, engine.ErrFailFast) && ctx.Err() == nil {
		runErr = nil // the report says that the run is incomplete, and why
	}
	err = errors.Join(a.finish(context.WithoutCancel(ctx), f, p.asJSON, result, runErr), closeLog())
	f.program.PrintLog(a.Stderr, err)
	return err
}

// checkMutants checks --mutants and the arguments: in "--mutants 30", 30 is an argument.
func (f *runFlags) checkMutants(args []string) error {
	if f.mutants < 0 {
		return exit.Usagef("--mutants %d: want a number from 0", f.mutants)
	}
	for _, arg := range args {
		if _, err := strconv.Atoi(arg); err == nil && f.mutants > 0 {
			return exit.Usagef("%q is no scenario; write --mutants=%s", arg, arg)
		}
	}
	return nil
}

// failFast is a progress that ends the run when a scenario fails it.
type failFast struct {
	engine.Progress
	flags *runFlags
	end   context.CancelCauseFunc
}

// Done ends the run if the exit code for this outcome alone is exit.Fail.
func (f failFast) Done(outcome report.Outcome) {
	f.Progress.Done(outcome)
	alone := report.Report{Outcomes: []report.Outcome{outcome}, FailOnUnsupported: f.flags.failOnUnsupported}
	if alone.ExitCode(f.flags.strict) == exit.Fail {
		f.end(engine.ErrFailFast)
	}
}

// targets returns the provider of the targets, and the progress of a run on it.
func (f *runFlags) targets(a *app, shown display) (display, target.Provider) {
	if a.provider != nil {
		return shown, a.provider
	}
	watched := &watch{display: shown}
	logs := ""
	if f.reportDir != "" {
		logs = filepath.Join(f.reportDir, "kind-logs")
	}
	return watched, f.target.Provider(watched.Line, logs, watched.failed.Load)
}

// openReport makes the folder of the report, and opens the log of the program in it. It also tries to write to the ConfigMap of
// the report. It is called before the run, so that an error does not waste the run.
func (f *runFlags) openReport(ctx context.Context) (closeLog func() error, err error) {
	if f.saveToCluster, err = f.configMap.open(ctx, f.target.Cluster()); err != nil {
		return nil, err
	}
	if err := makeReportDir(f.reportDir); err != nil {
		return nil, err
	}
	return f.program.OpenLog(f.reportDir)
}

// thisEnvironment returns the environment of a run that began at a time.
func thisEnvironment(began time.Time) *report.Environment {
	this := thisVersion()
	return &report.Environment{Admissiontest: this.Version, Platform: this.Platform, Started: began.UTC().Format(time.RFC3339)}
}

// watch is a progress that records whether any outcome was a failure, an error or inconclusive.
type watch struct {
	display
	failed atomic.Bool
}

// Done records a failure, an error or an inconclusive outcome.
func (w *watch) Done(outcome report.Outcome) {
	switch outcome.Verdict {
	case framework.Fail, framework.Errored, framework.Inconclusive:
		w.failed.Store(true)
	}
	w.display.Done(outcome)
}

// options returns the engine's options that depend on flags only, and the value of
// --implementation.
func (f *runFlags) options() (options engine.Options, implementation *framework.Implementation, err error) {
	options = engine.Options{
		Parallel: f.parallel, Isolate: f.parallel == 1, Patience: f.patience, Rerun: f.rerun, ObservePlugins: f.target.ObservePlugins, AllowForeign: f.allowForeign,
	}
	if options.Skip, err = f.skipped(); err != nil {
		return options, nil, err
	}
	if f.knownFailing != "" {
		if options.KnownFailing, err = flags.ReadKnownFailing(f.knownFailing, f.selection.Loaded); err != nil {
			return options, nil, err
		}
	}
	implementation, err = flags.ParseImplementation(f.implementation)
	return options, implementation, err
}

// skipped returns the reasons to skip scenarios, by name of the scenario.
func (f *runFlags) skipped() (map[string]string, error) {
	reasons := map[string]string{}
	for _, arg := range f.skip {
		names, err := engine.Match(f.selection.Loaded, arg)
		if err != nil {
			return nil, exit.Usagef("--skip: %w", err)
		}
		for _, name := range names {
			reasons[name] = "by --skip " + arg
		}
	}
	return reasons, nil
}

// rerun returns the command line that runs one scenario again on the same target.
func (f *runFlags) rerun(s scenario.Scenario) string {
	own := []string{"patience", "allow-foreign", "allow-server-flags", "install", "endpoint", "endpoint-ca"}
	if f.parallel == 1 {
		own = append(own, "parallel")
	}
	return shellescape.QuoteCommand(slices.Concat([]string{"admissiontest", "run"}, f.selection.Args(s), f.target.Args(f.set), flags.Args(f.set, own...), f.program.Args()))
}

// saveLimit limits the time to write the report to a ConfigMap.
const saveLimit = 15 * time.Second

// finish writes the report and returns an error with the exit code.
func (a *app) finish(ctx context.Context, f *runFlags, asJSON bool, result report.Report, runErr error) error {
	var errs []error
	if f.reportDir != "" {
		errs = append(errs, report.SaveDir(f.reportDir, result), html.Save(f.reportDir, result))
	}
	if f.saveToCluster != nil && runErr == nil { // otherwise a Job runs it again, and what merges the reports must not see this one
		limited, cancel := context.WithTimeout(ctx, saveLimit)
		defer cancel()
		errs = append(errs, f.saveToCluster(limited, result))
	}
	switch {
	case asJSON:
		errs = append(errs, report.WriteJSON(a.Stdout, result))
	case f.watch:
		errs = append(errs, report.WriteTotals(a.Stdout, result, report.ConsoleOptions{Color: a.color(a.Stdout), Strict: f.strict}))
	case result.Target.Kind != "" || runErr == nil: // without a target there is no report
		errs = append(errs, report.WriteConsole(a.Stdout, result, report.ConsoleOptions{
			Verbose: f.verbose, Color: a.color(a.Stdout), Strict: f.strict,
		}))
	}
	if a.env("GITHUB_ACTIONS") == "true" {
		if err := a.github(result); err != nil {
			a.note(err.Error())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(runErr, exit.New(exit.Infrastructure, err))
	}
	code := result.ExitCode(f.strict)
	if runErr == nil {
		switch {
		case code == exit.Pass:
			return nil
		case code == exit.Nothing && asJSON: // without -o json, the last line on the console says why
			return exit.New(code, errors.New(result.WhyNothing(f.strict)))
		}
		return exit.New(code, nil)
	}
	if errors.Is(runErr, framework.ErrTimeout) && !errors.Is(runErr, framework.ErrNoResponse) {
		// A timeout of the fence decides nothing, but a failure that was found before the timeout
		// counts.
		if code != exit.Fail {
			code = exit.Inconclusive
		}
		return exit.New(code, runErr)
	}
	if exit.Code(runErr) == exit.Usage {
		return runErr
	}
	return exit.New(exit.Infrastructure, fmt.Errorf("run scenarios: %w", runErr))
}
