package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// hostile returns a report in which every text is markup, and a script that calls hacked().
func hostile(t *testing.T) report.Report {
	t.Helper()
	r, err := report.Read("../../internal/report/testdata/pages/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sample returns a report of a run with a number of outcomes. Of twenty scenarios, one fails, one is
// unsupported, one is a known failure, and sometimes one is inconclusive or an error.
func sample(outcomes int) report.Report {
	r := report.New(framework.TargetInfo{
		Kind: framework.TargetEnvtest, ServerVersion: "v1.36.3", Transport: framework.TransportURL,
		FeatureGates: map[string]bool{"MutatingAdmissionPolicy": true, "AllAlpha": false}, Capabilities: framework.Capabilities(),
	})
	r.Environment = &report.Environment{Admissiontest: "v0.3.0", Platform: "linux/amd64", Started: "2026-11-22T20:00:00Z"}
	r.Timing = report.Timing{TargetReady: 2.6, Catalogue: 31.2, Total: 34.1}
	areas := []string{"order", "reinvocation", "wire", "match", "vap", "map", "failure", "audit", "warn", "side-effects"}
	for i := range outcomes {
		area := areas[(i+i/20)%len(areas)]
		r.Outcomes = append(r.Outcomes, verdictOf(i, report.Outcome{
			Name: fmt.Sprintf("%s.the-webhook-is-called-in-order.%04d", area, i), Area: area, Level: framework.Levels()[i/7%3],
			Verdict:     framework.Pass,
			Requirement: "A mutating webhook receives the object as the webhook before it in the order of the configurations changed it.",
			Source:      []string{"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy"},
			Behaviours:  []string{fmt.Sprintf("%s-%03d", strings.ToUpper(area), i%100)},
			File:        fmt.Sprintf("scenarios/%s/in-order-%04d.yaml", area, i), Line: 4, DurationSeconds: 0.031,
			Rerun: fmt.Sprintf("admissiontest run %s.the-webhook-is-called-in-order.%04d", area, i),
		}))
	}
	return r
}

// verdictOf gives the outcome of number i its verdict, with what belongs to it.
func verdictOf(i int, o report.Outcome) report.Outcome {
	switch {
	case i%20 == 0:
		o.Verdict, o.Reason, o.Evidence = framework.Fail, "step 1 (line 21): create ConfigMap subject: calls[1]: expected a call", failed()
	case i%20 == 5:
		o.Verdict, o.Reason, o.NotServed = framework.Unsupported, "arrange: the API server does not serve v1 Pod", "v1 Pod"
	case i%20 == 10:
		o.Verdict, o.KnownFailing, o.Evidence = framework.Fail, "https://example.com/issues/1", failed()
	case i%100 == 15:
		o.Verdict, o.Reason = framework.Inconclusive, "the fence did not answer within 30s"
	case i%100 == 35:
		o.Verdict, o.Reason = framework.Errored, "send request: connection refused"
	case i%100 == 55:
		o.Verdict, o.Reason = framework.Skipped, "by --skip"
	}
	return o
}

// failed returns the evidence of a failure.
func failed() *report.Evidence {
	took := 2.1
	return &report.Evidence{
		Step: 1, Line: 21, Action: "create ConfigMap subject", Response: "201", DurationMillis: 9.7,
		Mismatches: []report.Mismatch{
			{Path: "calls[1].request.object.data.by", Expected: `"second"`, Actual: `"first"`},
			{Path: "calls[2]", Expected: "a call of third.example.com", Actual: "no further call"},
		},
		Timeline: []report.TimelineEntry{
			{OffsetMillis: 1.1, Phase: "mutating", Plugin: "MutatingAdmissionWebhook", Request: "CREATE configmaps at-k3f9xq2m7d-00001/subject", Answer: "changed data", DurationMillis: &took, Observed: true},
			{OffsetMillis: 1.4, Phase: "mutating", Webhook: "first.example.com", Request: "CREATE at-k3f9xq2m7d-00001/subject", Answer: "allowed, patch (1 operation)", DurationMillis: &took, Observed: true, Patch: []report.PatchOperation{{Op: "add", Path: "/data", Value: `{"by":"first"}`}}},
			{OffsetMillis: 3.8, Phase: "mutating", Webhook: "second.example.com", Request: "CREATE at-k3f9xq2m7d-00001/subject", Answer: "allowed", DurationMillis: &took, Observed: true, Divergent: true},
			{Phase: "audit", Summary: `mutation.webhook.admission.k8s.io/round_0_index_0 = {"configuration":"at-k3f9xq2m7d-00001-a","webhook":"first.example.com","mutated":true}`},
		},
		Decisions: []report.Decision{{
			Subject: `MutatingWebhookConfiguration "a", webhook "third.example.com"`, Effect: "none", Reason: "NamespaceSelector",
			Text: `it is not called: the namespaceSelector does not match namespace "at-k3f9xq2m7d-00001": label "team" is missing, want "blue"`,
		}},
	}
}
