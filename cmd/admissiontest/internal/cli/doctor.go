package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/doctor"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	cluster           clusterFlags
	live              bool // --kubeconfig or --context is given
	output, failOn    string
	version, baseline string
	verbose           bool
	input             doctor.Input
}

func (a *app) doctorCommand() *cobra.Command {
	var o doctorOptions
	command := &cobra.Command{
		Use:   "doctor [FILE|DIR ...]",
		Short: "Check webhook configurations and policies, in files or on a cluster",
		Long: `Check webhook configurations, policies and bindings by rules: whether they can stop a
cluster, whether the API server can call the webhooks, and whether they match what they
mean to match. docs/doctor.md describes the rules.

Files have manifests of any kind: Services, workloads and CustomResourceDefinitions tell
what is around the configurations. With --kubeconfig, doctor checks a cluster, which it
only reads. With both, it checks the files as if they were on the cluster.

What a rule needs and cannot know makes it inconclusive, never a pass. Files need not have
everything, so this is only a remark about files, unless --strict is given.

Exit codes: 0 no finding at or above --fail-on, 1 findings, 2 usage error or a bad file,
3 nothing to check, 4 infrastructure error, 5 a rule of level MUST is inconclusive: on a
cluster, or with --strict.`,
		Example: "  kustomize build config/default > all.yaml; admissiontest doctor all.yaml\n  admissiontest doctor --kubeconfig ~/.kube/config\n  admissiontest doctor config/ -o json > doctor.json\n  admissiontest doctor all.yaml --only CF-BLOCK --skip CF-BLOCK-5",
	}
	command.RunE = a.reading(func(ctx context.Context, args []string) error {
		o.live = givenFlags(command, "kubeconfig", "context") != ""
		return a.doctor(ctx, args, o)
	})
	o.cluster.add(command)
	set := command.Flags()
	set.StringVarP(&o.output, "output", "o", "text", "text or json")
	set.BoolVarP(&o.verbose, "verbose", "v", false, "print each finding and each remark in full")
	set.StringVar(&o.failOn, "fail-on", "error", "exit with 1 for findings of this severity and worse: error, warning, note or none")
	set.StringSliceVar(&o.input.Only, "only", nil, "only these rules: IDs, names, or groups such as CF-BLOCK")
	set.StringSliceVar(&o.input.Skip, "skip", nil, "not these rules")
	set.StringVar(&o.version, "k8s-version", "", "version of the API server that files are for, such as 1.37 (default: the oldest supported one, or that of the cluster)")
	set.StringVar(&o.baseline, "baseline", "", "earlier report (-o json) whose findings and remarks are accepted: only others count")
	set.BoolVar(&o.input.Strict, "strict", false, "exit with 5 if files do not show what a rule of level MUST needs")
	return command
}

// check returns a usage error for flags that cannot be right.
func (o *doctorOptions) check(args []string) error {
	for _, flag := range []struct {
		name, value string
		want        []string
	}{{"-o", o.output, []string{"text", "json"}}, {"--fail-on", o.failOn, []string{"error", "warning", "note", "none"}}} {
		if !slices.Contains(flag.want, flag.value) {
			return usagef("%s %q: want %s%s", flag.name, flag.value, strings.Join(flag.want, ", "), suggest.DidYouMean(flag.value, flag.want))
		}
	}
	if len(args) == 0 && !o.live {
		return usagef("nothing to check: give files or folders of manifests, or --kubeconfig for a cluster")
	}
	minor, err := minorOf(o.version)
	if err != nil {
		return err
	}
	o.input.Minor = minor
	if _, err := doctor.Choose(o.input.Only, o.input.Skip); err != nil {
		return withCode(exitUsage, err)
	}
	return nil
}

func (a *app) doctor(ctx context.Context, args []string, o doctorOptions) error {
	if err := o.check(args); err != nil {
		return err
	}
	var accepted *doctor.Report
	if o.baseline != "" {
		text, err := userfile.Read(o.baseline)
		if err != nil {
			return usagef("--baseline: %w", err)
		}
		if accepted, err = doctor.ReadReport(text); err != nil {
			return usagef("--baseline %s: %w", o.baseline, err)
		}
	}
	var bad []error
	if len(args) > 0 {
		project, err := shipped.Read(args...)
		bad = append(bad, err)
		o.input.Manifests = project.Manifests
	}
	if o.live {
		var err error
		if o.input.Cluster, err = a.snapshot(ctx, o); err != nil {
			return errors.Join(append(bad, err)...)
		}
	}
	report, err := doctor.Judge(ctx, o.input)
	if report == nil {
		return errors.Join(append(bad, err)...)
	}
	bad = append(bad, err)
	return a.reportDoctor(report, o, accepted, errors.Join(bad...))
}

// snapshot reads the cluster.
func (a *app) snapshot(ctx context.Context, o doctorOptions) (*doctor.Snapshot, error) {
	config, err := o.cluster.provider(nil).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return doctor.ReadCluster(ctx, config, o.input.Manifests)
}

// reportDoctor writes a report and returns the error with its exit code. Bad are the files that could not be read.
func (a *app) reportDoctor(report *doctor.Report, o doctorOptions, accepted *doctor.Report, bad error) error {
	if accepted != nil {
		for _, gone := range report.Accept(accepted) {
			a.note(fmt.Sprintf("the baseline has a finding that is gone: %s %s: write a new one", gone.Rule, gone.Object))
		}
	}
	write := func() error { _, err := fmt.Fprint(a.Stdout, report.Text(o.verbose)); return err }
	if o.output == "json" {
		write = func() error { return writeJSON(a.Stdout, report) }
	}
	if err := write(); err != nil {
		return err
	}
	if bad != nil {
		return withCode(exitUsage, bad)
	}
	switch {
	case len(report.Findings) > 0 && o.failOn != "none" && report.Findings[0].Severity.AtLeast(doctor.Severity(o.failOn)):
		return withCode(exitFail, nil)
	case report.Configurations == 0:
		return withCode(exitNothing, errors.New("nothing to check: no webhook configuration, policy or binding was found"))
	case len(report.Inconclusive()) > 0:
		return withCode(exitInconclusive, nil)
	}
	return nil
}
