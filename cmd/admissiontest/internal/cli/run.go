package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/policymutants"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// runFlags are the flags of the command run, and the run that they describe.
type runFlags struct {
	set *pflag.FlagSet
	// run is what the engine is asked to do. Flags set some of its options, plan the others.
	run engine.Options
	// about is what the report says about the run itself: the implementation, the shard, and what fails the run.
	about                 report.Report
	output                outputFlag
	selection             selectionFlags
	target                targetFlags
	endpoints             endpointFlags
	install               []string
	shard                 string
	strict                string
	saveToCluster         func(context.Context, report.Report) error
	asJSON, verbose       bool
	failFast, watch       bool
	mutants               int
	skip, implementation  []string
	knownFailing, profile string
	claim                 *engine.Profile // that of --profile, or nil
	program               userProgram
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
` + processes.CertDirPlaceholder + ` is a folder with a certificate that the API server trusts: tls.crt and tls.key.`,
		Example: `  admissiontest run                                  # the catalogue, on an API server started here
  admissiontest run reinvocation 'wire.*'            # an area, and all that match a pattern
  admissiontest run my-scenarios/ --only 'owner.*'   # your own, by name
  admissiontest run my-scenarios/ --report out       # your own; writes report.json, junit.xml and report.html
  admissiontest run --kubeconfig kubeconfig -o json
  admissiontest run my-scenarios/ --watch            # again on each save
  admissiontest run my-scenarios/ -- ./my-webhook --port 9443 --cert-dir {cert-dir}
  admissiontest run my-scenarios/ --endpoint my-system/my-webhook=https://127.0.0.1:9443 --endpoint-ca my-system/my-webhook=ca.crt`,
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		a.parsed = true
		if err := f.target.check(command); err != nil {
			return err
		}
		if err := f.checkMutants(args); err != nil {
			return err
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
		err = usagef("-- without a program; want -- PROGRAM [ARGUMENT ...]")
	}
	return args[:at], args[at:], err
}

// add adds the flags to a command.
func (f *runFlags) add(command *cobra.Command) {
	f.set = command.Flags()
	f.target.add(command)
	f.endpoints.add(command)
	f.selection.add(command)
	f.output.add(command)
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
		{"What runs", []string{"only", "skip", "profile", "shard", "install", "mutants", "watch"}},
		{"Where it runs", []string{
			"target", "k8s-version", "assets-dir", "assets-index", "no-download", "no-build", "plugin", "observe-plugins", "kubeconfig", "context", "disposable", "transport",
		}},
		{"Your webhooks", []string{"endpoint", "endpoint-ca"}},
		{"How it runs", []string{"parallel", "patience", "fail-fast"}},
		{"What fails the run", []string{"strict", "known-failing"}},
		{"What it writes", []string{"output", "verbose", "report", "implementation"}},
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
	set.StringVar(&f.shard, "shard", "", "run only part I of N of the selected scenarios: I/N, or "+byIndex+"/N in an Indexed Job of N pods; \"admissiontest report merge\" merges the reports of all parts")
	set.StringArrayVar(&f.install, "install", nil, "install the webhook configurations, policies and CustomResourceDefinitions of FILE|DIR, such as the output of kustomize build, for all scenarios, and remove them at the end (repeatable)")
	set.StringSliceVar(&f.skip, "skip", nil, "do not run these: NAME, AREA or PATTERN")
	set.StringVar(&f.knownFailing, "known-failing", "", "YAML file with a line NAME: REASON for each scenario that is known to fail; if one of them passes, the run fails")
	set.StringSliceVar(&f.implementation, "implementation", nil, "describe the implementation under test in the report: KEY=VALUE,... with the keys "+strings.Join(implementationKeys(), ", "))
	set.IntVar(&f.run.Parallel, "parallel", engine.DefaultParallel, "how many scenarios run at the same time; 1 runs each without the webhooks and policies of others")
	set.DurationVar(&f.run.Patience, "patience", engine.DefaultPatience, "how long to wait for asynchronous work of the API server: until it uses what was installed, for the first answer of each webhook under test, and in a step")
	f.target.report.add(command)
	set.BoolVar(&f.failFast, "fail-fast", false, "stop after the first scenario that fails the run; the remaining scenarios are skipped")
	set.IntVar(&f.mutants, "mutants", 0, "also run the cases of each PolicyTest with changes of its policies, one at a time, and report those that no case notices: at most this many")
	set.Lookup("mutants").NoOptDefVal = "100"
	set.StringVar(&f.strict, "strict", "", "the run also fails if a SHOULD fails; --strict=unsupported: and if a scenario of any level is unsupported")
	set.Lookup("strict").NoOptDefVal = "should"
	set.BoolVar(&f.watch, "watch", false, "run again after each save of a scenario, of a file that it refers to, of a plugin or of PROGRAM. Stop it with an interrupt; the exit code is that of the last run")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "print a line for each scenario, and complete timelines")
}

// run implements the command run.
func (a *app) run(ctx context.Context, f *runFlags, args []string) error {
	if f.watch {
		return a.watch(ctx, f, args)
	}
	if _, err := untilInterrupted(ctx, func() (struct{}, error) { return struct{}{}, a.plan(f, args, nil) }); err != nil {
		return err
	}
	return a.execute(ctx, f)
}

// claimed sets the profile of --profile, and returns the arguments that select its scenarios.
func (f *runFlags) claimed(args []string) ([]string, error) {
	if f.profile == "" {
		return args, nil
	}
	if len(args) > 0 {
		return nil, usagef("--profile %s cannot be combined with %q: it selects the scenarios", f.profile, args[0])
	}
	found, err := engine.ProfileNamed(f.profile)
	if err != nil {
		return nil, usagef("--profile: %w", err)
	}
	f.claim = &found
	return found.Selects, nil
}

// plan reads the files that a command line names, and sets all options of the engine except for the provider and the
// progress. opened is called with the path of each file: see scenario.LoadOptions.
func (a *app) plan(f *runFlags, args []string, opened func(path string)) (err error) {
	if f.asJSON, err = f.output.json(); err != nil {
		return err
	}
	if levels := []string{"", "should", "unsupported"}; !slices.Contains(levels, f.strict) {
		return usagef("--strict=%s: want --strict or --strict=unsupported%s", f.strict, suggest.DidYouMean(f.strict, levels))
	}
	f.about.Strict, f.about.FailOnUnsupported = f.strict != "", f.strict == "unsupported"
	if f.run.Parallel < 1 {
		return usagef("--parallel %d: want a number from 1", f.run.Parallel)
	}
	if f.run.Patience <= 0 {
		return usagef("--patience %s: want more than 0", f.run.Patience)
	}
	if f.run.Install, err = a.project(f.install); err != nil {
		return err
	}
	if args, err = f.claimed(args); err != nil {
		return err
	}
	selected, err := f.selection.resolve(args, scenario.LoadOptions{Installed: f.run.Install.Webhooks(), Opened: opened})
	if err != nil {
		return err
	}
	if err := knownRules(selected); err != nil {
		return err
	}
	if f.claim != nil {
		selected = f.claim.Keep(selected)
	}
	if f.mutants > 0 && !slices.ContainsFunc(selected, scenario.Scenario.IsPolicyTest) {
		return usagef("--mutants is about the policies of PolicyTests, and none is selected")
	}
	if f.run.Endpoints, err = f.program.endpoints(&f.endpoints, selected, f.run.Install.Objects()); err != nil {
		return err
	}
	if err := f.reasons(); err != nil {
		return err
	}
	if err := f.program.Check(selected, f.run.Skip); err != nil {
		return err
	}
	f.run.Rerun = f.rerun
	f.run.Scenarios, f.about.Shard, err = chooseShard(f.shard, selected)
	return err
}

// project reads the manifests of --install. Without --install, the Project is nil.
func (a *app) project(paths []string) (*shipped.Project, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	project, err := shipped.Load(paths...)
	if err != nil {
		return nil, err
	}
	for _, line := range project.LeftOut() {
		a.note("--install: " + line)
	}
	return project, nil
}

// execute carries out what plan planned.
func (a *app) execute(ctx context.Context, f *runFlags) error {
	if err := f.openReport(ctx); err != nil {
		return err
	}
	options := f.run
	running, end := context.WithCancelCause(ctx)
	began := time.Now()
	makeRoom(len(f.selection.loaded))
	defer end(nil)
	shown := newProgress(a.Stderr, len(scenario.Cases(f.run.Scenarios)), func(outcome report.Outcome) {
		if f.failFast && f.failsAlone(outcome) {
			end(engine.ErrFailFast)
		}
	})
	options.Progress = shown
	targets := a.provider
	if targets == nil {
		targets = f.target.provider(shown.Line)
	}
	f.program.Progress = shown.Line
	options.Provider = f.program.Provider(targets, end, len(options.Install.Objects()) > 0)
	result, runErr := engine.Run(running, options)
	if runErr == nil {
		runErr = f.contracts(running, options, &result)
	}
	if runErr == nil && f.mutants > 0 {
		options.Progress.Stage("running the cases with changed policies")
		result.Mutants, runErr = policymutants.Mutate(running, options, policymutants.MutateOptions{Most: f.mutants, Before: result})
	}
	result.Timing.Total = time.Since(began).Seconds()
	result.Implementation, result.FailOnUnsupported, result.Strict = f.about.Implementation, f.about.FailOnUnsupported, f.about.Strict
	result.Environment, result.Shard = thisEnvironment(began), f.about.Shard
	if f.claim != nil {
		claim, err := f.claim.Judge(result, f.selection.loaded)
		if err != nil {
			return err
		}
		result.Claim = &claim
	}
	result.Interrupted = runErr != nil && ctx.Err() != nil
	runErr = endedBefore(running, runErr)
	if errors.Is(runErr, engine.ErrFailFast) && ctx.Err() == nil {
		runErr = nil // the report says that the run is incomplete, and why
	}
	err := a.finish(context.WithoutCancel(ctx), f, result, runErr)
	f.program.PrintLog(a.Stderr, err)
	return err
}

// checkMutants checks --mutants and the arguments: in "--mutants 30", 30 is an argument.
func (f *runFlags) checkMutants(args []string) error {
	switch {
	case f.mutants < 0:
		return usagef("--mutants %d: want a number from 0", f.mutants)
	case f.mutants > 0 && (f.shard != "" || f.watch):
		return usagef("--mutants cannot be combined with --shard or --watch: it is about all cases of a PolicyTest")
	}
	for _, arg := range args {
		if _, err := strconv.Atoi(arg); err == nil && f.mutants > 0 {
			return usagef("%q is no scenario; write --mutants=%s", arg, arg)
		}
	}
	return nil
}

// failsAlone reports whether the exit code for an outcome alone is exitFail.
func (f *runFlags) failsAlone(outcome report.Outcome) bool {
	alone := report.Report{Outcomes: []report.Outcome{outcome}, FailOnUnsupported: f.about.FailOnUnsupported}
	return alone.ExitCode(f.about.Strict) == exitFail
}

// openReport makes the folder of the report, and tries to write to its ConfigMap. It is called before the run, so that an
// error does not waste the run.
func (f *runFlags) openReport(ctx context.Context) (err error) {
	if f.saveToCluster, err = f.target.report.open(ctx, &f.target.cluster); err != nil {
		return err
	}
	return makeReportDir(f.target.report.dir)
}

// thisEnvironment returns the environment of a run that began at a time.
func thisEnvironment(began time.Time) *report.Environment {
	this := thisVersion()
	return &report.Environment{Admissiontest: this.Version, Platform: this.Platform, Started: began.UTC().Format(time.RFC3339)}
}

// reasons reads --skip, --known-failing and --implementation.
func (f *runFlags) reasons() (err error) {
	f.run.Skip = map[string]string{}
	for _, arg := range f.skip {
		names, err := engine.Match(f.selection.loaded, arg)
		if err != nil {
			return usagef("--skip: %w", err)
		}
		for _, name := range names {
			f.run.Skip[name] = "by --skip " + arg
		}
	}
	if f.knownFailing != "" {
		if f.run.KnownFailing, err = readKnownFailing(f.knownFailing, f.selection.loaded); err != nil {
			return err
		}
	}
	f.about.Implementation, err = parseImplementation(f.implementation)
	return err
}

// rerun returns the command line that runs one scenario again on the same target.
func (f *runFlags) rerun(s scenario.Scenario) string {
	own := []string{"patience", "install", "endpoint", "endpoint-ca"}
	if f.run.Parallel == 1 {
		own = append(own, "parallel")
	}
	return shellescape.QuoteCommand(slices.Concat([]string{"admissiontest", "run"}, f.selection.args(s), f.target.args(f.set), argsOf(f.set, own...), f.program.Args()))
}

// saveLimit limits the time to write the report to a ConfigMap.
const saveLimit = 15 * time.Second

// finish writes the report and returns an error with the exit code.
func (a *app) finish(ctx context.Context, f *runFlags, result report.Report, runErr error) error {
	var errs []error
	if dir := f.target.report.dir; dir != "" {
		errs = append(errs, report.SaveDir(dir, result))
	}
	if f.saveToCluster != nil && runErr == nil { // otherwise a Job runs it again, and what merges the reports must not see this one
		limited, cancel := context.WithTimeout(ctx, saveLimit)
		defer cancel()
		errs = append(errs, f.saveToCluster(limited, result))
	}
	switch {
	case f.asJSON:
		errs = append(errs, report.WriteJSON(a.Stdout, result))
	case result.Target.Kind != "" || runErr == nil: // without a target there is no report
		errs = append(errs, report.WriteConsole(a.Stdout, result, report.ConsoleOptions{
			Verbose: f.verbose, Color: a.color(a.Stdout), Strict: f.about.Strict,
		}))
	}
	if a.env("GITHUB_ACTIONS") == "true" {
		if err := a.summarize(result); err != nil {
			a.note(err.Error())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(runErr, withCode(exitInfrastructure, err))
	}
	code := result.ExitCode(f.about.Strict)
	if runErr == nil {
		switch {
		case code == exitPass:
			return nil
		case code == exitNothing && f.asJSON: // without -o json, the last line on the console says why
			return withCode(code, errors.New(result.WhyNothing(f.about.Strict)))
		}
		return withCode(code, nil)
	}
	if errors.Is(runErr, framework.ErrTimeout) && !errors.Is(runErr, framework.ErrNoResponse) {
		// A timeout of the fence decides nothing, but a failure that was found before the timeout
		// counts.
		if code != exitFail {
			code = exitInconclusive
		}
		return withCode(code, runErr)
	}
	if codeOf(runErr) == exitUsage {
		return runErr
	}
	return withCode(exitInfrastructure, fmt.Errorf("run scenarios: %w", runErr))
}
