package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/suites/policy/internal/rules"
)

// Comparison has what differs between two Subjects. The fields are:
//
//	Targets      the two API servers
//	Compared     how many requests were compared, by their kind: those to which both give a steady response
//	Dropped      how many requests an API server does not accept without the policies and webhooks: they say nothing
//	Unsteady     the requests to which one of the two gives different responses, or no decision
//	Differences  a Difference of each kind, first those that the first Subject refuses and the second one allows
type Comparison = rules.Comparison

// Difference is a request on which two Subjects differ. The fields are:
//
//	What       names the request
//	Like       how many other requests differ in the same way
//	Fields     what differs: some of [ComparedFields]
//	Responses  what the first Subject responds, and the second one
//	Case       the request as a case of a PolicyTest that the first Subject passes, without what does not matter; nil if a PolicyTest
//	           cannot send it
type Difference = rules.Difference

// Decision is a response without the name of the policy or webhook, and without what an API server chooses. The fields are:
//
//	Allowed           whether the request was carried out
//	Code              the HTTP status
//	Reason            the reason of the Status of a refusal
//	Message           its message
//	Warnings          the texts of the warnings, sorted
//	AuditAnnotations  what policies and webhooks add, without their names, and the messages of validations with the action Audit
//	Object            the object in the response to a request that was allowed; nil for a deletion
type Decision = rules.Decision

// Compare fails a test for each difference between what two Subjects decide, and if no request can be compared. See [Differences].
func Compare(t *testing.T, a, b Subject, ignored ...string) {
	t.Helper()
	found, err := Differences(t.Context(), a, b, ignored...)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range found.Differences {
		t.Error(each)
	}
	for _, each := range found.Unsteady {
		t.Logf("not compared: different responses, or no decision: %s", each)
	}
	if found.Sum() == 0 {
		t.Errorf("nothing was compared: %d requests are not accepted without policies and webhooks, and %d get different responses, or no decision", found.Dropped, len(found.Unsteady))
	}
	t.Logf("%d differences in %d requests; %d not accepted without policies and webhooks", len(found.Differences), found.Sum(), found.Dropped)
}

// Differences sends the same requests to the policies and webhooks of two Subjects, each on an API server of its own. They are made from the
// samples of both, and from the expressions of all policies. Ignored are Fields of a Difference that do not count. No difference does not
// mean that the two are equal. The error is an [ErrSubject] if they cannot be compared.
func Differences(ctx context.Context, a, b Subject, ignored ...string) (*Comparison, error) {
	var sides [2]rules.Side
	var both rules.Subject
	for i, subject := range []Subject{a, b} {
		read, err := subject.read()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSubject, err)
		}
		if wrong := read.Mismatched(); len(wrong) > 0 {
			return nil, fmt.Errorf("%w: %s", ErrSubject, strings.Join(wrong, "\n"))
		}
		assets := binaries.Options{Version: subject.KubernetesVersion, Dir: subject.BinaryAssetsDirectory}
		var on target.Provider = providers.NewEnvtest(providers.EnvtestOptions{Assets: assets})
		if subject.Program != nil {
			on = withProgram{on, subject.Program}
		}
		sides[i] = rules.Side{Provider: on, Endpoints: subject.Endpoints, Manifests: read.Policies}
		both.Given, both.Good, both.Bad = append(both.Given, read.Given...), append(both.Good, read.Good...), append(both.Bad, read.Bad...)
		if i == 0 {
			both.Requester = read.Requester
		}
	}
	return rules.Compare(ctx, sides, both, ignored)
}

// withProgram is a Provider that also starts the program of a Subject.
type withProgram struct {
	target.Provider
	start func(kubeConfig []byte) (stop func() error, err error)
}

// Start implements target.Provider.
func (w withProgram) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	started, err := w.Provider.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	stop, err := w.start(started.Optional().KubeConfig)
	if err != nil {
		return nil, errors.Join(err, started.Close(context.WithoutCancel(ctx)))
	}
	return besideProgram{started, stop}, nil
}

// besideProgram is a Target that also stops the program.
type besideProgram struct {
	target.Target
	stop func() error
}

// Close implements target.Target.
func (b besideProgram) Close(ctx context.Context) error {
	return errors.Join(b.stop(), b.Target.Close(ctx))
}

// ErrSubject is the error of a Subject that cannot be used, which is not the fault of an API server.
var ErrSubject = rules.ErrSubject

// ComparedFields are the values of Fields of a Difference.
func ComparedFields() []string { return rules.ComparedFields() }

// WithSamples returns the Subject with what another one has too: Given, Good, Bad and Requests, and its Requester if this one has none.
func (s Subject) WithSamples(of Subject) Subject {
	and := func(m, other Manifests) Manifests {
		return Manifests{slices.Concat(m.paths, other.paths), slices.Concat(m.objects, other.objects)}
	}
	s.Given, s.Good, s.Bad, s.Requests = and(s.Given, of.Given), and(s.Good, of.Good), slices.Concat(s.Bad, of.Bad), slices.Concat(s.Requests, of.Requests)
	if s.Requester.Name == "" {
		s.Requester = of.Requester
	}
	return s
}
