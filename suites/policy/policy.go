package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/policy/internal/rules"
)

// Run checks each rule in a subtest of t with a name such as PO-ERR-1_no-evaluation-error. A subtest fails if a policy
// breaks the rule or a sample is not as declared. It is skipped if the rule is waived, does not apply to the policies,
// or could not be judged.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	if subject.Name == "" {
		subject.Name = t.Name()
	}
	report := Check(t.Context(), subject, options...)
	for _, misuse := range report.Misuse {
		t.Error(misuse)
	}
	if report.Err != nil {
		t.Error(report.Err)
	}
	count := map[framework.Verdict]int{}
	for _, outcome := range report.Outcomes {
		t.Run(outcome.Rule.String(), func(t *testing.T) {
			count[outcome.Verdict]++
			rule.Tell(t, outcome.Verdict, outcome.Text(subject.Name))
		})
	}
	t.Logf("%s; %d requests, %d not accepted without the policies", rule.Summary(count), report.Requests, report.NotAccepted)
}

// Report has the results for a Subject.
type Report struct {
	// Misuse says what is wrong with the Subject or the options. Then there are no Outcomes. Empty means nothing.
	Misuse []string
	// Err is why no API server could be asked, which is not the fault of the policies. Then there are no Outcomes.
	Err error
	// Target is the API server. It is zero if none was asked.
	Target framework.TargetInfo
	// Outcomes has one Outcome for each selected rule.
	Outcomes []Outcome
	// Requests is how many requests were sent without the policies, and NotAccepted how many of these the API server
	// refused: they say nothing about the policies.
	Requests, NotAccepted int
}

// Check starts an API server, checks the rules, and stops it. Use it instead of [Run] to write your own report, and
// [Server] for several Subjects.
func Check(ctx context.Context, subject Subject, options ...Option) Report {
	server := &Server{KubernetesVersion: subject.KubernetesVersion, BinaryAssetsDirectory: subject.BinaryAssetsDirectory}
	report := server.Check(ctx, subject, options...)
	if err := server.Close(ctx); err != nil && report.Err == nil && len(report.Misuse) == 0 {
		return Report{Err: err}
	}
	return report
}

// Server is an API server on this machine for several Subjects. The zero value has the default version. The API server
// starts with the first Subject, and runs until Close. The methods cannot be called at the same time.
type Server struct {
	// KubernetesVersion and BinaryAssetsDirectory are as in [Subject], whose fields are not used.
	KubernetesVersion, BinaryAssetsDirectory string

	started *rules.Server
}

// Close stops the API server. Without one, it does nothing.
func (s *Server) Close(ctx context.Context) error {
	if s.started == nil {
		return nil
	}
	err := s.started.Close(ctx)
	s.started = nil
	return err
}

// observe sends the requests about a Subject. The API server starts with the first one; after an error of it, the next one gets another.
func (s *Server) observe(ctx context.Context, subject rules.Subject) (observed *rules.Observations, err error) {
	if s.started == nil {
		provider := providers.NewEnvtest(providers.EnvtestOptions{NoAudit: true, Assets: binaries.Options{Version: s.KubernetesVersion, Dir: s.BinaryAssetsDirectory}})
		if s.started, err = rules.Start(ctx, provider); err != nil {
			return nil, err
		}
	}
	observed, err = s.started.Observe(ctx, subject)
	if err != nil && !errors.Is(err, rules.ErrSubject) {
		err = errors.Join(err, s.Close(ctx))
	}
	return observed, err
}

// Check checks the rules for a Subject.
func (s *Server) Check(ctx context.Context, subject Subject, options ...Option) Report {
	selected := rule.Selected(options)
	definitions := rule.Select(rules.All(), selected)
	report := Report{Misuse: selected.Misuse("policy", Rules())}
	read, err := subject.read()
	if err != nil {
		report.Misuse = append(report.Misuse, err.Error())
	} else {
		report.Misuse = append(report.Misuse, read.Misuse()...)
	}
	if len(report.Misuse) > 0 {
		return report
	}
	observed, err := s.observe(ctx, read)
	switch {
	case errors.Is(err, rules.ErrSubject):
		report.Misuse = append(report.Misuse, err.Error())
		return report
	case err != nil:
		report.Err = err
		return report
	}
	report.Target, report.Requests, report.NotAccepted = observed.Server, len(observed.Cases), observed.Dropped
	for _, each := range definitions {
		t := &rules.T{T: rule.NewT(rule.Names{
			Suite: "policy", Subject: "the policies", Unreached: "no request that the API server accepts without the policies is about this rule",
		}), Subject: read, Observations: observed}
		outcome := t.Run(each.Rule(), each.Exclusive, budget, func() {
			if why := observed.Unsent[rules.Every]; why != "" {
				t.Unobserved("no request was sent with the policies: %s", why)
				return
			}
			each.Check(t)
		})
		report.Outcomes = append(report.Outcomes, selected.Apply("policy", outcome))
	}
	return report
}

// budget is how long the judgment of one rule may take, without requests.
const budget = 10 * time.Second

// Rules returns all rules, in the order in which they are checked.
func Rules() []Rule { return rule.Rules(rules.All()) }
