package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/userfile"
	"github.com/admissiontest/admissiontest/suites/policy"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

// contractOptions are the flags of contract.
type contractOptions struct {
	url, caFile, serverName, kind string
	replicas                      []string
	output                        outputFlag
	reportDir                     string
	configurations, allow, reject []string
	policies, given, good, bad    []string
	version                       string
	only, with, waive             []string
	strict, verbose               bool
	budget                        time.Duration
}

func (a *app) contractCommand() *cobra.Command {
	var o contractOptions
	command := &cobra.Command{
		Use:   "contract --url URL | --policies FILE",
		Short: "Check the rules for webhooks on a running webhook, or the rules for policies",
		Long: `Check the rules for webhooks on a webhook that runs. The requests are built from your samples, and
sent to the webhook directly.

With --url, the webhook runs at a URL: no API server is needed, and nothing is written.
--configuration has the webhook configurations: their paths, rules and selectors say which
requests each webhook gets. Without --configuration, --kind says what the webhook is. Further
replicas of the program are compared with it by --replica.

A webhook in a Pod has a URL after kubectl port-forward. Its certificate is valid for the name of
the Service: give that name with --server-name.

A sample is FILE, which is created, or OPERATION:FILE, such as DELETE:FILE, with an object that exists.

With --policies, check the rules for policies on a kube-apiserver of this machine, with requests that are derived from
objects that the policies allow (--good) and refuse (--bad): their creations, or with DELETE:FILE their deletions. Updates are
samples of a PolicyTest with the field contract.

The exit codes are the same as for run.`,
		Example: "  admissiontest contract --url https://127.0.0.1:9443 --ca-file ca.crt --configuration config/webhook.yaml --allow good.yaml --reject 'bad.yaml=is not allowed'\n  admissiontest contract --url https://127.0.0.1:9443/validate --kind validating --allow good.yaml -o junit\n  admissiontest contract --url https://127.0.0.1:9443 --server-name guard.default.svc --ca-file ca.crt --configuration config/webhook.yaml --allow good.yaml --reject 'DELETE:kept.yaml=is protected'\n  admissiontest contract --policies config/policy --good good.yaml --bad 'bad.yaml=must have limits'",
		Args:    noArguments,
	}
	command.RunE = a.reading(func(ctx context.Context, _ []string) error {
		return a.contract(ctx, o)
	})
	set := command.Flags()
	set.StringVar(&o.url, "url", "", "address of the webhook: https://HOST:PORT, or with the path of the webhook")
	set.StringSliceVar(&o.replicas, "replica", nil, "with --url: addresses of other replicas, which must give the same answers")
	set.StringVar(&o.caFile, "ca-file", "", "PEM file with the certificates that verify the webhook (default: the system's)")
	set.StringVar(&o.serverName, "server-name", "", "with --url: the name that the certificate must have (default: the host of the URL)")
	set.StringSliceVar(&o.configurations, "configuration", nil, "files or folders with the webhook configurations")
	set.StringVar(&o.kind, "kind", "", "mutating or validating, if there is no configuration")
	set.StringSliceVar(&o.allow, "allow", nil, "files with an object that the webhook must allow, or OPERATION:FILE")
	set.StringArrayVar(&o.reject, "reject", nil, "file with an object that the webhook must deny, or FILE=MESSAGE with a part of the message; or OPERATION:FILE")
	set.StringSliceVar(&o.policies, "policies", nil, "files or folders with policies, their bindings and params")
	set.StringSliceVar(&o.given, "given", nil, "with --policies: files with what must exist before, such as CustomResourceDefinitions")
	set.StringSliceVar(&o.good, "good", nil, "with --policies: files with objects that the policies allow")
	set.StringArrayVar(&o.bad, "bad", nil, "with --policies: FILE=MESSAGE, an object that the policies refuse, and a part of the message")
	set.StringVar(&o.version, "k8s-version", "", "with --policies: the Kubernetes version, such as 1.37")
	set.StringSliceVar(&o.only, "only", nil, "check only these rules, by ID or name")
	set.StringSliceVar(&o.with, "with", nil, "also check these rules, which are checked only on request")
	set.StringArrayVar(&o.waive, "waive", nil, "RULE=REASON: the webhook may break this rule")
	set.DurationVar(&o.budget, "budget", webhook.DefaultBudget, "with --url: how long the check of one rule may take for one webhook")
	set.BoolVar(&o.strict, "strict", false, "a SHOULD that fails makes the command fail")
	set.BoolVarP(&o.verbose, "verbose", "v", false, "print every outcome in full")
	o.output.add(command, formatText, formatJSON, formatJUnit)
	set.StringVar(&o.reportDir, "report-dir", "", "folder for report.json, junit.xml and report.html")
	return command
}

func (a *app) contract(ctx context.Context, o contractOptions) error {
	if _, err := o.output.json(); err != nil {
		return err
	}
	started := time.Now()
	result, err := o.check(ctx)
	if err != nil {
		return err
	}
	result.Interrupted = ctx.Err() != nil
	result.Timing.Total = time.Since(started).Seconds()
	var errs []error
	if o.reportDir != "" {
		errs = append(errs, report.SaveDir(o.reportDir, result))
	}
	if err := errors.Join(append(errs, a.writeContract(result, o))...); err != nil {
		return withCode(exitInfrastructure, err)
	}
	switch code := result.ExitCode(o.strict); {
	case result.Interrupted:
		return ctx.Err()
	case code != exitPass:
		return withCode(code, nil)
	}
	return nil
}

// writeContract writes the report to standard output.
func (a *app) writeContract(r report.Report, o contractOptions) error {
	switch o.output.format {
	case formatJSON:
		return report.WriteJSON(a.Stdout, r)
	case formatJUnit:
		return report.WriteJUnit(a.Stdout, r)
	}
	return report.WriteConsole(a.Stdout, r, report.ConsoleOptions{Verbose: o.verbose, Color: a.color(a.Stdout), Strict: o.strict})
}

// check checks the rules.
func (o contractOptions) check(ctx context.Context) (report.Report, error) {
	if err := o.misspelt(); err != nil {
		return report.Report{}, err
	}
	switch {
	case len(o.policies) > 0 && o.url != "":
		return report.Report{}, usagef("--policies and --url cannot be combined: check webhooks and policies one after the other")
	case o.url != "" && len(o.good)+len(o.bad)+len(o.given) > 0:
		return report.Report{}, usagef("--good, --bad and --given belong to --policies: the samples of a webhook are --allow and --reject")
	case len(o.policies) > 0 && len(o.allow)+len(o.reject)+len(o.configurations) > 0:
		return report.Report{}, usagef("--allow, --reject and --configuration belong to --url: the samples of policies are --good and --bad")
	case len(o.policies) > 0:
		return o.checkPolicies(ctx)
	case o.url == "":
		return report.Report{}, usagef("--url or --policies is required: give the address of a webhook, such as https://127.0.0.1:9443, or files with policies")
	}
	subject, err := o.subject()
	if err != nil {
		return report.Report{}, err
	}
	checked := webhook.Check(ctx, subject, o.options()...)
	switch {
	case len(checked.Misuse) > 0:
		return report.Report{}, withCode(exitUsage, errors.New(inFlags(strings.Join(checked.Misuse, "\n"))))
	case checked.Err != nil:
		return report.Report{}, withCode(exitInfrastructure, errors.New(inFlags(checked.Err.Error())))
	}
	return contractReport(o.strict, checked.Outcomes), nil
}

// checkPolicies checks the rules for policies.
func (o contractOptions) checkPolicies(ctx context.Context) (report.Report, error) {
	s, err := o.policySubject()
	if err != nil {
		return report.Report{}, err
	}
	var options []policy.Option
	if len(o.only) > 0 {
		options = append(options, policy.Only(o.only...))
	}
	for _, arg := range o.waive {
		name, why, _ := strings.Cut(arg, "=")
		options = append(options, policy.Waive(name, why))
	}
	checked := policy.Check(ctx, s, options...)
	switch {
	case len(checked.Misuse) > 0:
		return report.Report{}, withCode(exitUsage, errors.New(inFlags(strings.Join(checked.Misuse, "\n"))))
	case checked.Err != nil:
		return report.Report{}, withCode(exitInfrastructure, checked.Err)
	}
	result := report.New(checked.Target)
	result.Strict = o.strict
	for _, each := range checked.Outcomes {
		result.Outcomes = append(result.Outcomes, ruleOutcome(each.Rule.ID, each.Rule, each.Verdict, each.Reason, each.Duration))
	}
	result.Summary = report.Count(result.Outcomes)
	return result, nil
}

// policySubject returns the policies and samples that the flags describe.
func (o contractOptions) policySubject() (policy.Subject, error) {
	s := policy.Subject{Policies: policy.Files(o.policies...), Given: policy.Files(o.given...), KubernetesVersion: o.version}
	var created []string
	for _, arg := range o.good {
		switch sample := sampleOf(arg); sample.Operation {
		case "", "CREATE":
			created = append(created, sample.File)
		case "DELETE":
			s.Requests = append(s.Requests, policy.Request{Name: arg, Object: policy.Files(sample.File)})
		default:
			return s, notHere("good", arg)
		}
	}
	for _, arg := range o.bad {
		file, message, _ := strings.Cut(arg, "=")
		switch sample := sampleOf(file); {
		case sample.Operation == "DELETE" && message != "":
			s.Requests = append(s.Requests, policy.Request{Name: file, Object: policy.Files(sample.File), Denied: message})
		case sample.Operation == "DELETE":
			return s, usagef("--bad %s has no message: want %s=MESSAGE, a part of the message of the refusal", arg, file)
		case sample.Operation == "UPDATE", sample.Operation == "CONNECT":
			return s, notHere("bad", arg)
		default:
			s.Bad = append(s.Bad, policy.Bad{Object: policy.Files(sample.File), Denied: message})
		}
	}
	s.Good = policy.Files(created...)
	return s, nil
}

// notHere says what to do instead of a sample of another operation.
func notHere(name, arg string) error {
	return usagef("--%s %s: want FILE or DELETE:FILE; for an update, write a PolicyTest with old, and contract: {}", name, arg)
}

// inFlags replaces the names of Go, in an error of a Subject or of options, by the flags.
func inFlags(said string) string {
	return strings.NewReplacer(
		"webhook: Subject ", "", "Allow and Reject", "--allow and --reject", "Configurations: ", "--configuration ", "set Kind", "give --kind",
		"Replicas: ", "--replica ", "Allow: ", "--allow ", "Reject: ", "--reject ", "webhook.Only: ", "--only: ", "webhook.With: ", "--with: ",
		"webhook.Waive: ", "--waive: ", "webhook.Rules lists all rules", "docs/webhook-rules.md has all rules", "policy.Only: ", "--only: ", "policy.Waive: ", "--waive: ",
		"policy.Rules lists all rules", "docs/policy-rules.md has all rules", "CA has", "--ca-file has", "want CA (", "want --ca-file (", "ServerName (", "--server-name (", "URL is ", "--url is ",
	).Replace(said)
}

// reasonInFlags is inFlags for the reason of an outcome, which can quote the webhook.
func reasonInFlags(reason string) string {
	return strings.NewReplacer("sample of Allow", "sample of --allow", "sample of Reject", "sample of --reject",
		"the sample is in Allow,", "the sample is in --allow,", "the sample is in Reject,", "the sample is in --reject,", "webhook.Budget", "--budget").Replace(reason)
}

// subject returns the webhook at a URL that the flags describe.
func (o contractOptions) subject() (webhook.Subject, error) {
	s := webhook.Subject{Name: o.url, URL: o.url, Replicas: o.replicas, ServerName: o.serverName, Kind: webhook.Kind(o.kind)}
	switch {
	case o.kind != "" && o.kind != string(webhook.Mutating) && o.kind != string(webhook.Validating):
		return s, usagef("--kind %q: want mutating or validating", o.kind)
	case o.kind != "" && len(o.configurations) > 0:
		return s, usagef("--kind and --configuration cannot be combined: a configuration has the kind")
	}
	if o.caFile != "" {
		ca, err := userfile.Read(o.caFile)
		if err != nil {
			return s, usagef("--ca-file: %w", err)
		}
		s.CA = ca
	}
	if len(o.configurations) > 0 {
		project, err := shipped.Read(o.configurations...)
		if err != nil {
			return s, err
		}
		for _, each := range project.Objects() {
			s.Configurations = append(s.Configurations, webhook.Manifest{Object: &unstructured.Unstructured{Object: each}})
		}
	}
	s.Allow, s.Reject = o.samples()
	return s, nil
}

// samples returns the samples of --allow and --reject.
func (o contractOptions) samples() (allow, reject []webhook.Sample) {
	for _, arg := range o.allow {
		allow = append(allow, sampleOf(arg))
	}
	for _, arg := range o.reject {
		file, message, _ := strings.Cut(arg, "=")
		sample := sampleOf(file)
		sample.Message = message
		reject = append(reject, sample)
	}
	return allow, reject
}

// sampleOf returns the sample of FILE or OPERATION:FILE. Other words before a colon belong to the name of the file.
func sampleOf(arg string) webhook.Sample {
	operation, file, found := strings.Cut(arg, ":")
	if !found || !slices.Contains(operations(), operation) {
		operation, file = "", arg
	}
	return webhook.Sample{Manifest: webhook.Manifest{File: file}, Operation: operation}
}

func operations() []string { return []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} }

// misspelt returns an error for a sample whose operation is misspelt: a word in capital letters before a colon, of no file.
func (o contractOptions) misspelt() error {
	for _, arg := range slices.Concat(o.allow, o.reject, o.good, o.bad) {
		word, _, found := strings.Cut(arg, ":")
		file, _, _ := strings.Cut(arg, "=")
		if _, err := os.Stat(file); found && err != nil && suggest.Nearest(word, operations()) != "" && !slices.Contains(operations(), word) {
			return usagef("sample %s: there is no operation %q%s", arg, word, suggest.DidYouMean(word, operations()))
		}
	}
	return nil
}

// options returns the options that the flags describe.
func (o contractOptions) options() []webhook.Option {
	options := []webhook.Option{webhook.With(o.with...), webhook.Budget(o.budget)}
	if len(o.only) > 0 {
		options = append(options, webhook.Only(o.only...))
	}
	for _, arg := range o.waive {
		name, why, _ := strings.Cut(arg, "=")
		options = append(options, webhook.Flaky(name, why)) // one webhook can break a rule that another keeps: see contractReport
	}
	return options
}

// contractReport returns the report of the outcomes. A waiver of a rule that no webhook breaks is a failure.
func contractReport(strict bool, outcomes []webhook.Outcome) report.Report {
	result := report.Report{APIVersion: report.APIVersion, Kind: report.Kind, Target: report.TargetInfo{Kind: report.KindWebhook}, Strict: strict}
	broken := map[string]bool{}
	for _, each := range outcomes {
		broken[each.Rule.ID] = broken[each.Rule.ID] || each.Verdict == framework.Skipped
	}
	for _, each := range outcomes {
		name := each.Rule.ID
		if each.Webhook != "" {
			name = fmt.Sprintf("%s (%s)", each.Rule.ID, each.Webhook)
		}
		if each.Waiver != "" && each.Verdict == framework.Pass && !broken[each.Rule.ID] {
			each.Verdict, each.Reason = framework.Fail, rule.NotBroken
		}
		result.Outcomes = append(result.Outcomes, ruleOutcome(name, each.Rule, each.Verdict, reasonInFlags(each.Reason), each.Duration))
	}
	result.Summary = report.Count(result.Outcomes)
	return result
}

// ruleOutcome returns the outcome of a rule. Its area is the middle of the ID: "err" of PO-ERR-1. A first reader sees first what refuses good
// objects, then what lets bad ones pass, and then what happens to stored objects.
func ruleOutcome(name string, of policy.Rule, verdict framework.Verdict, reason string, took time.Duration) report.Outcome {
	area := strings.ToLower(strings.Split(of.ID, "-")[1])
	if verdict != framework.Fail || reason == rule.NotBroken {
		of.Fix = ""
	}
	return report.Outcome{
		Name: name, Area: area, Level: of.Level, Verdict: verdict, Rank: map[string]int{"door": 1, "bind": 1, "life": 2}[area],
		Requirement: of.Title, Source: of.Source, Fix: of.Fix, Reason: reason, DurationSeconds: took.Seconds(),
	}
}
