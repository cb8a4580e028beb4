package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// compareOptions are the flags of compare.
type compareOptions struct {
	a, b, given, good, bad, cases []string
	versions, ignored             []string
	endpoints, ofB                endpointFlags
	program                       userProgram
	served                        int // whose API server the program uses
	output                        outputFlag
}

func (a *app) compareCommand() *cobra.Command {
	var o compareOptions
	command := &cobra.Command{
		Use:   "compare --a FILE --b FILE [flags] [-- PROGRAM [ARG...]]",
		Short: "Compare what two policies or webhooks decide",
		Long: `Compare what two deciders make of the same requests: policies or webhooks, each on a kube-apiserver of this machine.

--a and --b have policies and bindings, or webhook configurations. Their webhooks run at --endpoint, or in PROGRAM, which serves at
port 9443 of this machine. If both name the same Service, --b-endpoint says where that of B runs.

The requests are made from objects that A allows (--good) and refuses (--bad), or from a PolicyTest with the field contract
(--cases), and from the expressions of both: values near constants, absent fields, other lists of containers, subresources, updates,
deletions, other users and namespaces.

With two versions of Kubernetes, A runs on the first one and B on the second. Without --b, A is compared with itself: what an
upgrade changes.

It prints the requests on which A and B differ, first what A refuses and B allows, each as a case for a PolicyTest. That there is no
difference does not mean that they are equal.

The exit code is 0 without a difference, 1 with one, 2 for wrong flags or files, 4 if no API server or webhook can be used, and 5 if
nothing, or not each request, could be compared.`,
		Example: "  admissiontest compare --a policy-v1.yaml --b policy-v2.yaml --good good.yaml --bad 'bad.yaml=must have limits'\n  admissiontest compare --a config/webhook.yaml --b policy.yaml --good good.yaml --bad 'bad.yaml=is not allowed' -- ./guard --cert-dir {cert-dir}\n  admissiontest compare --a policy.yaml --cases policytest.yaml --k8s-version 1.36,1.37",
		Args:    cobra.ArbitraryArgs,
	}
	command.RunE = a.reading(func(ctx context.Context, args []string) (err error) {
		if args, o.program.Command, err = cutProgram(command, args); err != nil {
			return err
		}
		if len(args) > 0 {
			return usagef("compare takes no arguments before --; got %q", args)
		}
		return a.compare(ctx, &o)
	})
	set := command.Flags()
	set.StringSliceVar(&o.a, "a", nil, "files or folders with the policies or webhook configurations of A")
	set.StringSliceVar(&o.b, "b", nil, "the same of B (default: that of A)")
	set.StringSliceVar(&o.given, "given", nil, "files with what must exist before, such as CustomResourceDefinitions")
	set.StringSliceVar(&o.good, "good", nil, "files with an object that A allows, or DELETE:FILE")
	set.StringArrayVar(&o.bad, "bad", nil, "FILE=MESSAGE, an object that A refuses, and a part of the message; or DELETE:FILE=MESSAGE")
	set.StringSliceVar(&o.cases, "cases", nil, "files or folders with PolicyTests, whose cases without a user are samples")
	set.StringSliceVar(&o.versions, "k8s-version", nil, "the Kubernetes version, such as 1.37, or that of A and that of B")
	set.StringSliceVar(&o.ignored, "ignore", nil, "what may differ: "+strings.Join(policy.ComparedFields(), ", "))
	o.endpoints.add(command)
	set.StringArrayVar(&o.ofB.urls, "b-endpoint", nil, "NAMESPACE/NAME=URL: --endpoint for B only")
	o.output.add(command, formatText, formatJSON)
	return command
}

// subjects returns what the flags describe.
func (o *compareOptions) subjects() (both [2]policy.Subject, err error) {
	if len(o.a) == 0 {
		return both, usagef("--a is required: files with policies or webhook configurations")
	}
	if len(o.b) == 0 && len(o.versions) < 2 {
		return both, usagef("--b is required, or two versions: --k8s-version 1.36,1.37")
	}
	if len(o.versions) > 2 {
		return both, usagef("--k8s-version %s: want one version, or that of A and that of B", strings.Join(o.versions, ","))
	}
	for _, each := range o.ignored {
		if !slices.Contains(policy.ComparedFields(), each) {
			return both, usagef("--ignore %s: want some of %s", each, strings.Join(policy.ComparedFields(), ", "))
		}
	}
	files := [2][]string{o.a, o.b}
	if len(o.b) == 0 {
		files[1] = o.a
	}
	samples := contractOptions{policies: o.a, given: o.given, good: o.good, bad: o.bad}
	if err := samples.misspelt(); err != nil {
		return both, err
	}
	if both[0], err = samples.policySubject(); err != nil {
		return both, err
	}
	if err := o.addCases(&both[0]); err != nil {
		return both, err
	}
	both[1].Policies = policy.Files(files[1]...)
	for i := range both {
		if len(o.versions) > 0 {
			both[i].KubernetesVersion = o.versions[min(i, len(o.versions)-1)]
		}
	}
	project, err := shipped.Read(o.a...)
	if err != nil {
		return both, err
	}
	if !slices.ContainsFunc(project.Manifests, isWebhooks) {
		o.served = 1
	}
	if project, err = shipped.Read(slices.Concat(o.a, o.b)...); err != nil {
		return both, err
	}
	if both[0].Endpoints, err = o.program.endpoints(&o.endpoints, nil, project.Objects()); err != nil {
		return both, err
	}
	both[1].Endpoints = maps.Clone(both[0].Endpoints)
	ofB, err := o.ofB.parse(nil, project.Objects())
	for name, each := range ofB {
		each.CABundle = both[0].Endpoints[name].CABundle
		both[1].Endpoints[name] = each
	}
	return both, err
}

// addCases adds the samples of PolicyTests.
func (o *compareOptions) addCases(s *policy.Subject) error {
	if len(o.cases) == 0 {
		return nil
	}
	all, err := scenario.Load(scenario.LoadOptions{AnyInstalled: true, Samples: true}, o.cases...)
	if err != nil {
		return withCode(exitUsage, err)
	}
	found := false
	for _, each := range all {
		if contract := each.ContractOf(); contract != nil {
			found = true
			of, _ := policy.OfTest(contract)
			*s = s.WithSamples(of)
		}
	}
	if !found {
		return usagef("--cases %s: there is no PolicyTest: want files whose cases are samples", strings.Join(o.cases, ","))
	}
	return nil
}

// compare implements the command.
func (a *app) compare(ctx context.Context, o *compareOptions) error {
	asJSON, err := o.output.json()
	if err != nil {
		return err
	}
	both, err := o.subjects()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if len(o.program.Command) > 0 {
		both[o.served].Program = func(kubeConfig []byte) (stop func() error, err error) {
			program, err := processes.StartProgram(processes.ProgramOptions{
				Command: o.program.Command, KubeConfig: kubeConfig, Certificates: o.program.certificates,
				Ended: func(reason error) { end(&endedError{redact.Text(reason.Error())}) },
			})
			if err != nil {
				return nil, err
			}
			return func() error {
				_, err := program.Stop()
				return err
			}, nil
		}
	}
	a.note("sending the same requests to A and to B, on two local API servers")
	found, err := policy.Differences(ctx, both[0], both[1], o.ignored...)
	switch {
	case errors.Is(err, policy.ErrSubject):
		return withCode(exitUsage, err)
	case err != nil:
		return withCode(exitInfrastructure, endedBefore(ctx, err))
	case asJSON:
		err = a.writeComparison(found)
	default:
		_, err = fmt.Fprint(a.Stdout, comparisonText(found))
	}
	switch {
	case err != nil:
		return withCode(exitInfrastructure, err)
	case len(found.Differences) > 0:
		return withCode(exitFail, nil)
	case found.Sum() == 0 || len(found.Unsteady) > 0:
		return withCode(exitInconclusive, nil)
	}
	return nil
}

// writeComparison writes the document for -o json.
func (a *app) writeComparison(found *policy.Comparison) error {
	encoder := json.NewEncoder(a.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		APIVersion string    `json:"apiVersion"`
		Kind       string    `json:"kind"`
		Versions   [2]string `json:"versions"`
		*policy.Comparison
	}{report.APIVersion, "Comparison", versionsOf(found.Targets), found})
}

// versionsOf returns the versions of two API servers.
func versionsOf(targets [2]framework.TargetInfo) [2]string {
	return [2]string{targets[0].ServerVersion, targets[1].ServerVersion}
}

// comparisonText describes a comparison.
func comparisonText(found *policy.Comparison) string {
	var out strings.Builder
	for i, each := range found.Differences {
		fmt.Fprintf(&out, "%d. %s\n", i+1, each)
		switch {
		case each.Like == 1:
			out.WriteString("  1 more request differs in the same way\n")
		case each.Like > 1:
			fmt.Fprintf(&out, "  %d more requests differ in the same way\n", each.Like)
		}
		if each.Case == nil {
			out.WriteString("  a PolicyTest cannot send this request\n\n")
			continue
		}
		text, _ := yaml.Marshal([]any{each.Case}) // it has only JSON values
		fmt.Fprintf(&out, "  as a case:\n    %s\n\n", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    "))
	}
	for _, each := range found.Unsteady {
		fmt.Fprintf(&out, "not compared: different responses to the same request, or no decision: %s\n", each)
	}
	versions := versionsOf(found.Targets)
	of := strings.Join(slices.Compact(versions[:]), " and ")
	switch n := len(found.Differences); n {
	case 0:
		fmt.Fprintf(&out, "no difference in %d requests", found.Sum())
	case 1:
		fmt.Fprintf(&out, "1 difference in %d requests", found.Sum())
	default:
		fmt.Fprintf(&out, "%d differences in %d requests", n, found.Sum())
	}
	fmt.Fprintf(&out, " on Kubernetes %s; %d more are not accepted without A and B\n", of, found.Dropped)
	for _, group := range slices.Sorted(maps.Keys(found.Compared)) {
		fmt.Fprintf(&out, "  %4d %s\n", found.Compared[group], group)
	}
	return out.String()
}
