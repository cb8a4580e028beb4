package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// foreignTarget is an API server on which other clients have webhooks and policies.
type foreignTarget struct {
	targettest.Target
	shared   bool
	foreign  []map[string]any
	findings []reach.Finding
	// only is the name of the object that findings are about. Empty means each.
	only string
}

func (foreignTarget) RunID() string { return "0123456789" }

func (t foreignTarget) Optional() target.Optional {
	optional := target.Optional{
		Foreign: func(context.Context) ([]map[string]any, error) { return t.foreign, nil },
		Explain: func(_ context.Context, id string, request framework.Request, _ framework.Result) ([]reach.Finding, error) {
			if id != "" || t.only != "" && t.only != request.Name {
				return nil, nil
			}
			return t.findings, nil
		},
	}
	if t.shared {
		optional.Confined = func(string, framework.Request) error { return nil }
	}
	return optional
}

// answering is a Sandbox whose API server gives one answer, and refuses what is installed with it.
type answering struct {
	targettest.Sandbox
	answer framework.Result
}

func (s *answering) Do(context.Context, framework.Request) (framework.Result, error) {
	return s.answer, nil
}

func (s *answering) Send(ctx context.Context, r framework.Request) (framework.Result, error) {
	return s.Do(ctx, r)
}

func (s *answering) Install(context.Context, map[string]any, map[string]hook.Script) error {
	if s.answer.Allowed() {
		return &framework.ManifestError{Field: "data", Err: errors.New("the API server does not store it")}
	}
	return fmt.Errorf("install it: %w", &apierrors.StatusError{ErrStatus: s.answer.Status})
}

func foreignWebhook(name string) map[string]any {
	return map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "c"}, "webhooks": []any{map[string]any{"name": name}}}
}

func foreignPolicy(name string) map[string]any {
	return map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": name}}
}

// theirs are the webhooks and policies of other clients.
func theirs() []map[string]any {
	return []map[string]any{foreignPolicy("theirs"), foreignPolicy("both"), foreignWebhook("theirs.example.com"), foreignWebhook("both.example.com")}
}

// foreignCase returns a case with a webhook and a policy, of which other clients have some of the same name.
func foreignCase(shared bool, answer framework.Result, steps ...scenario.Step) *Case {
	sandbox := &answering{answer: answer}
	c := caseOn(sandbox)
	c.target = foreignTarget{Target: targettest.Target{Sandbox: sandbox}, shared: shared, foreign: theirs()}
	c.ID = "at-0123456789-00001"
	c.Given = []map[string]any{foreignWebhook("own.example.com"), foreignWebhook("both.example.com"), foreignPolicy("own"), foreignPolicy("both")}
	c.Scenario.Spec.When = steps
	c.project = &shipped.Project{Manifests: []shipped.Manifest{{Object: foreignWebhook("installed.example.com")}}}
	return c
}

func createStep(then *scenario.Expectation) scenario.Step {
	return scenario.Step{Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}, Then: then}
}

const byTheirs = `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: no`

// A refusal by a webhook or policy that the run did not install is no verdict, whatever is expected. On an API
// server without other clients, one that the server does not have is a failure.
func TestRefusedByForeign(t *testing.T) {
	t.Parallel()
	refused := false
	expectations := map[string]*scenario.Expectation{
		"nothing": nil, "a refusal": {Allowed: &refused}, "its code": {Code: scenario.OneOrMore[int]{403}},
		"its message": {Message: scenario.OneOrMore[string]{"no"}}, "another policy": {RefusedBy: &scenario.RefusedBy{Policy: []string{"both"}}},
	}
	for message, want := range map[string][2]string{ // on a server of others, and on one of the run
		byTheirs: {"policy \"theirs\"", "policy \"theirs\""},
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'both' with binding 'b' denied request: no`:                  {"policy \"both\"", ""},
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'static' with binding 'b' denied request: no`:                {"policy \"static\"", ""},
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'at-0123456789-00001-own' with binding 'b' denied request: `: {},
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: expression 'x' resulted in error: no`: {
			"policy \"theirs\"", "policy \"theirs\"",
		},
		`policy "theirs" denied request: no`:                                                                                         {"policy \"theirs\"", "policy \"theirs\""},
		`admission webhook "theirs.example.com" denied the request: no`:                                                              {"webhook \"theirs.example.com\"", "webhook \"theirs.example.com\""},
		`Internal error occurred: failed calling webhook "theirs.example.com": failed to call webhook: no`:                           {"webhook \"theirs.example.com\"", "webhook \"theirs.example.com\""},
		`admission webhook "own.example.com" denied the request: no`:                                                                 {},
		`admission webhook "installed.example.com" denied the request: no`:                                                           {},
		`admission webhook "own.example.com" denied the request: admission webhook "theirs.example.com" denied the request: wrapped`: {},
		`configmaps "a" is forbidden: expression 'object.y == 1' resulted in error: no such key: y`:                                  {},
		`configmaps "a" is forbidden: User "u" cannot create resource`:                                                               {},
	} {
		t.Run(message, func(t *testing.T) {
			for on, shared := range []bool{true, false} {
				for name, then := range expectations {
					c := foreignCase(shared, response(403, message), createStep(then))
					failure := c.Act(t.Context())
					foreign := (*ForeignError)(nil)
					is := failure != nil && errors.As(failure.Err, &foreign)
					if is != (want[on] != "") || is && !strings.Contains(foreign.Error(), want[on]+", which this run did not install") {
						t.Errorf("shared %t, expecting %s, %s: got %v, want %q", shared, name, message, failure, want[on])
					}
					if !is {
						continue
					}
					if got := c.Outcome(failure); got.Verdict != framework.Inconclusive || got.Reason != foreign.Error() || failure.NothingAboutAdmission() != "" {
						t.Errorf("got %s: %s, want inconclusive: %s, not repeated", got.Verdict, got.Reason, foreign)
					}
				}
			}
		})
	}
}

// A scenario can be about a policy that the API server has: then its refusal is expected.
func TestForeignNamed(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"theirs": true, "other": false} {
		t.Run(name, func(t *testing.T) {
			c := foreignCase(true, response(403, byTheirs), createStep(&scenario.Expectation{RefusedBy: &scenario.RefusedBy{Policy: []string{name}}}))
			if failure := c.Act(t.Context()); (failure == nil) != named {
				t.Errorf("expecting policy %s: got %v", name, failure)
			}
		})
	}
}

// Two webhooks have the same name, and the response does not say which of them refused, or it names none: it is the one of the
// scenario if the other one is not called for the request.
func TestForeignOfTheSameName(t *testing.T) {
	t.Parallel()
	for message, other := range map[string]reach.Effect{
		`admission webhook "both.example.com" denied the request: no`:                               reach.EffectCalled,
		`configmaps "a" is forbidden: expression 'object.x == 1' resulted in error: no such key: x`: reach.EffectNone,
	} {
		for effect, inconclusive := range map[reach.Effect]bool{reach.EffectNone: false, reach.EffectCalled: true, reach.EffectUnknown: true} {
			t.Run(string(effect)+message, func(t *testing.T) {
				c := foreignCase(true, response(403, message), createStep(&scenario.Expectation{Code: scenario.OneOrMore[int]{403}, Message: scenario.OneOrMore[string]{"no"}}))
				on := c.target.(foreignTarget)
				on.findings = []reach.Finding{{Kind: "ValidatingWebhookConfiguration", Name: "c", Webhook: "theirs.example.com", Effect: other}, {Kind: "ValidatingWebhookConfiguration", Name: "c", Webhook: "both.example.com", Effect: effect}}
				c.target = on
				if failure := c.Act(t.Context()); (failure != nil) != inconclusive {
					t.Errorf("%s: got %v, want inconclusive: %t", effect, failure, inconclusive)
				}
			})
		}
	}
}

// A webhook or policy of another client that changes objects can be why a response is not as expected. One
// that only decides can be why warnings are not.
func TestForeignChange(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		finding reach.Finding
		then    scenario.Expectation
		want    bool
	}{
		"object":     {reach.Finding{Kind: "MutatingWebhookConfiguration", Webhook: "m.example.com", Effect: reach.EffectCalled}, scenario.Expectation{Object: map[string]any{"a": "b"}}, true},
		"code":       {reach.Finding{Kind: "MutatingAdmissionPolicy", Name: "m", Effect: reach.EffectMutates}, scenario.Expectation{Code: scenario.OneOrMore[int]{403}}, true},
		"not called": {reach.Finding{Kind: "MutatingWebhookConfiguration", Webhook: "m.example.com", Effect: reach.EffectNone}, scenario.Expectation{Object: map[string]any{"a": "b"}}, false},
		"validating": {reach.Finding{Kind: "ValidatingWebhookConfiguration", Webhook: "v.example.com", Effect: reach.EffectCalled}, scenario.Expectation{Object: map[string]any{"a": "b"}}, false},
		"warnings":   {reach.Finding{Kind: "ValidatingWebhookConfiguration", Webhook: "v.example.com", Effect: reach.EffectCalled}, scenario.Expectation{Warnings: []any{"w"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := foreignCase(true, response(201, ""), createStep(&test.then))
			on := c.target.(foreignTarget)
			on.findings = []reach.Finding{test.finding}
			c.target = on
			failure := c.Act(t.Context())
			if failure == nil || (c.Outcome(failure).Verdict == framework.Inconclusive) != test.want || len(failure.Mismatches) == 0 {
				t.Errorf("got %v, want inconclusive: %t", failure, test.want)
			}
		})
	}
}

// A namespaceSelector of another client can be why a request in a namespace that does not exist gets 404.
func TestForeignSelector(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		effect reach.Effect
		kind   string
		want   bool
	}{
		"namespace":      {reach.EffectUnknown, "namespaces", true},
		"object":         {reach.EffectUnknown, "configmaps", false},
		"does not apply": {reach.EffectNone, "namespaces", false},
		"denies":         {reach.EffectInvalid, "namespaces", false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := response(404, "not found")
			answer.Status.Reason, answer.Status.Details = metav1.StatusReasonNotFound, &metav1.StatusDetails{Kind: test.kind, Name: "gone"}
			c := foreignCase(true, answer, createStep(&scenario.Expectation{Code: scenario.OneOrMore[int]{201}}))
			on := c.target.(foreignTarget)
			on.findings = []reach.Finding{{Kind: "ValidatingAdmissionPolicy", Name: "theirs", Effect: test.effect}}
			c.target = on
			failure := c.Act(t.Context())
			if failure == nil || (c.Outcome(failure).Verdict == framework.Inconclusive) != test.want {
				t.Errorf("got %v, want inconclusive: %t", failure, test.want)
			}
		})
	}
}

// An object that another client changed before is the cause too, and why the API server does not store what the
// scenario gives.
func TestForeignChangeBefore(t *testing.T) {
	t.Parallel()
	then := &scenario.Expectation{Code: scenario.OneOrMore[int]{403}}
	for name, want := range map[string]bool{"before": true, "other": false} {
		t.Run(name, func(t *testing.T) {
			c := foreignCase(true, response(201, ""), createStep(then))
			given := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "before"}}
			c.Given = append(c.Given, given)
			on := c.target.(foreignTarget)
			on.findings, on.only = []reach.Finding{{Kind: "MutatingWebhookConfiguration", Webhook: "m.example.com", Effect: reach.EffectCalled}}, name
			c.target = on
			if failure := c.Act(t.Context()); failure == nil || errors.As(failure.Err, new(*ForeignError)) != want {
				t.Errorf("changed %s: got %v, want a ForeignError: %t", name, failure, want)
			}
			if err := (&Setup{Case: c}).Arrange(t.Context()); err == nil || errors.As(err, new(*ForeignError)) != want {
				t.Errorf("changed %s, given: got %v, want a ForeignError: %t", name, err, want)
			}
		})
	}
}

// What refuses a step or the setup of a scenario can be of another client too, and one of the requests that
// are sent at the same time can fail because of that.
func TestForeignInSetupAndSteps(t *testing.T) {
	t.Parallel()
	manifest := createStep(nil).Create
	for name, step := range map[string]scenario.Step{
		"install": {Install: []map[string]any{manifest}}, "eventually": {Create: manifest, Eventually: true, Then: &scenario.Expectation{Code: scenario.OneOrMore[int]{201}}},
	} {
		t.Run(name, func(t *testing.T) {
			failure := foreignCase(true, response(422, byTheirs), step).Act(t.Context())
			if failure == nil || !errors.As(failure.Err, new(*ForeignError)) {
				t.Errorf("got %v", failure)
			}
		})
	}
	c := foreignCase(true, response(422, byTheirs))
	c.Given = []map[string]any{manifest}
	if got := NotArranged((&Setup{Case: c}).Arrange(t.Context())); got.Verdict != framework.Inconclusive || got.Reason != `refused by policy "theirs", which this run did not install` {
		t.Errorf("given: got %s: %s", got.Verdict, got.Reason)
	}
	refused, foreign := failed("a", errPanic), failed("b", &ForeignError{"theirs"})
	if got := ofParallel([]*Failure{refused, foreign}); got != foreign {
		t.Errorf("parallel: got %v, want the one that another client's policy refused", got)
	}
	if err := OfForeign(t.Context(), nil, &apierrors.StatusError{ErrStatus: response(500, `failed calling webhook "theirs.example.com": no`).Status}, nil); !errors.As(err, new(*ForeignError)) {
		t.Errorf("before there is a target: got %v", err)
	}
}
