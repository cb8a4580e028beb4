package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
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
				return exit.Usagef("%s:%d: contract.except: there is no rule %q%s", s.File, each.Line, each.Rule, suggest.DidYouMean(each.Rule, names))
			}
		}
	}
	return nil
}

// contracts checks the contracts of PolicyTests, and adds their outcomes to a report: one for each rule, or one that
// says why no rule was checked. If the context ends before the last one, it returns the cause, and the report is incomplete.
func (a *app) contracts(ctx context.Context, f *runFlags, selected []scenario.Scenario, result *report.Report) (err error) {
	var added []report.Outcome
	server := &policy.Server{KubernetesVersion: f.target.Assets.Version, BinaryAssetsDirectory: f.target.Assets.Dir}
	defer func() { err = errors.Join(err, server.Close(ctx)) }()
	for _, s := range selected {
		contract := s.ContractOf()
		if contract == nil {
			continue
		}
		whole := func(verdict framework.Verdict, reason string) {
			added = append(added, report.Outcome{
				Name: s.Metadata.Name + ".contract", Area: s.Area, Level: framework.Must, Verdict: verdict,
				Requirement: "The rules that hold for every policy can be checked.", Reason: reason,
			})
		}
		if f.target.Envtest(func(string) {}, false) == nil {
			whole(framework.Unsupported, "the contract installs the policies as they are, so it needs an API server that ends with the run: use --target envtest")
			continue
		}
		subject, options := policy.OfTest(contract)
		subject.Name = s.Metadata.Name
		checked := server.Check(ctx, subject, options...)
		switch {
		case ctx.Err() != nil:
			result.Incomplete = "the contract of " + s.Metadata.Name + " was not checked to its end"
			return context.Cause(ctx)
		case len(checked.Misuse) > 0:
			whole(framework.Errored, strings.Join(checked.Misuse, "\n"))
		case checked.Err != nil:
			whole(framework.Errored, checked.Err.Error())
		}
		for _, each := range checked.Outcomes {
			outcome := ruleOutcome(s.Metadata.Name+"."+each.Rule.ID, each.Rule, each.Verdict, each.Reason, each.Duration)
			outcome.Area = s.Area
			added = append(added, outcome)
		}
	}
	if len(added) > 0 {
		result.Outcomes = slices.Concat(result.Outcomes, added)
		slices.SortStableFunc(result.Outcomes, func(a, b report.Outcome) int { return strings.Compare(a.Name, b.Name) })
		result.Summary = report.Count(result.Outcomes)
	}
	return nil
}
