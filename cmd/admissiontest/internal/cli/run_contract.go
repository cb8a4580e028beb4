package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// knownRules returns an error if an exception of a contract names a rule that does not exist.
func knownRules(selected []scenario.Scenario) error {
	var names []string
	for _, each := range policy.Rules() {
		names = append(names, each.ID, each.Name)
	}
	for _, s := range selected {
		contract := s.ContractOf()
		if contract == nil {
			continue
		}
		for _, each := range contract.Except {
			if !slices.Contains(names, each.Rule) {
				return usagef("%s:%d: contract.except: there is no rule %q%s", s.File, each.Line, each.Rule, suggest.DidYouMean(each.Rule, names))
			}
		}
	}
	return nil
}

// The contracts of a run share API servers, up to three if there are many: while one contract waits until its policies are
// effective, others send requests.
const (
	contractsOfServer = 5
	mostServers       = 3
)

// contracts checks the contracts of PolicyTests, and adds their outcomes to a report: one for each rule, or one that
// says why no rule was checked. If the context ends before the last one, it returns the cause, and the report is incomplete.
func (f *runFlags) contracts(ctx context.Context, options engine.Options, result *report.Report) error {
	tests := scenario.Keep(options.Scenarios, func(s scenario.Scenario) bool { return s.ContractOf() != nil })
	if len(tests) == 0 {
		return nil
	}
	envtest := f.target.name == framework.TargetEnvtest
	if envtest {
		options.Progress.Stage("checking the contracts of PolicyTests")
	}
	checked := make([][]report.Outcome, len(tests))
	var next, done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(mostServers, 1+(len(tests)-1)/contractsOfServer) {
		group.Go(func() (err error) {
			server := &policy.Server{KubernetesVersion: f.target.assets.Version}
			defer func() { err = errors.Join(err, server.Close(ctx)) }()
			for i := int(next.Add(1)) - 1; i < len(tests); i = int(next.Add(1)) - 1 {
				if !envtest {
					checked[i] = []report.Outcome{uncheckedContract(tests[i], framework.Unsupported,
						"the contract installs the policies as they are, so it needs an API server that ends with the run: use --target envtest")}
					continue
				}
				checked[i] = checkContract(ctx, server, tests[i])
				if ctx.Err() != nil {
					checked[i] = nil
					return context.Cause(ctx)
				}
				if n := done.Add(1); len(tests) > 1 {
					options.Progress.Stage(fmt.Sprintf("%d of %d contracts checked", n, len(tests)))
				}
			}
			return nil
		})
	}
	err := group.Wait()
	for i, s := range tests {
		if checked[i] == nil && err != nil && result.Incomplete == "" {
			result.Incomplete = "the contract of " + s.Metadata.Name + " was not checked to its end"
		}
		result.Outcomes = append(result.Outcomes, checked[i]...)
	}
	slices.SortStableFunc(result.Outcomes, func(a, b report.Outcome) int { return strings.Compare(a.Name, b.Name) })
	result.Summary = report.Count(result.Outcomes)
	return err
}

// uncheckedContract is the outcome of a contract of which no rule was checked.
func uncheckedContract(s scenario.Scenario, verdict framework.Verdict, reason string) report.Outcome {
	return report.Outcome{
		Name: s.Metadata.Name + ".contract", Area: s.Area, Level: framework.Must, Verdict: verdict,
		Requirement: "The rules that hold for every policy can be checked.", Reason: reason,
	}
}

// checkContract returns an outcome for each rule of a contract, or the one of uncheckedContract.
func checkContract(ctx context.Context, server *policy.Server, s scenario.Scenario) (all []report.Outcome) {
	subject, options := policy.OfTest(s.ContractOf())
	subject.Name = s.Metadata.Name
	checked := server.Check(ctx, subject, options...)
	switch {
	case len(checked.Misuse) > 0:
		return []report.Outcome{uncheckedContract(s, framework.Errored, strings.Join(checked.Misuse, "\n"))}
	case checked.Err != nil:
		return []report.Outcome{uncheckedContract(s, framework.Errored, checked.Err.Error())}
	}
	for _, each := range checked.Outcomes {
		outcome := ruleOutcome(s.Metadata.Name+"."+each.Rule.ID, each.Rule, each.Verdict, each.Reason, each.Duration)
		outcome.Area = s.Area
		all = append(all, outcome)
	}
	return all
}
