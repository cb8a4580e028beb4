package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// creating is a scenario that creates an object.
func creating(name, kind string, then scenario.Expectation) scenario.Scenario {
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "subject"}}
	return scenario.Scenario{
		Metadata: scenario.Metadata{Name: name},
		Spec:     scenario.Spec{Level: framework.Must, When: []scenario.Step{{Create: object, Then: &then}}},
	}
}

// waitUntilRefused waits until the creation of an object named subject is refused.
func waitUntilRefused(t *testing.T, create func(ctx context.Context) error) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		return create(ctx) != nil, nil
	})
	if err != nil {
		t.Fatal("what another client installed does not refuse: ", err)
	}
}

// What other clients of a cluster installed is the cause of no verdict: a run reports what it refuses as
// inconclusive, and everything if nothing can be found out.
func TestForeign(t *testing.T) {
	t.Parallel()
	admin := testserver.Own(t)
	client := kubernetes.NewForConfigOrDie(admin)
	admissions, dryRun := client.AdmissionregistrationV1(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	refused := false
	all := []scenario.Scenario{
		creating("a.denied", "ConfigMap", scenario.Expectation{Allowed: &refused}), creating("a.created", "ConfigMap", scenario.Expectation{Code: scenario.OneOrMore[int]{201}}),
		creating("a.other", "Secret", scenario.Expectation{Code: scenario.OneOrMore[int]{201}}),
	}
	judge := func(t *testing.T, want map[string]string) {
		t.Helper()
		began := time.Now()
		out, err := engine.Run(t.Context(), engine.Options{Provider: providers.RESTConfig{Config: admin}, Scenarios: all})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, outcome := range out.Outcomes {
			got[outcome.Name] = strings.TrimSpace(string(outcome.Verdict) + " " + outcome.Reason)
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the run took %s", took)
		}
	}
	rule := func(resources ...string) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
		}
	}

	refuseSubjects(t, client)
	byPolicy := `inconclusive refused by policy "no-subjects", which this run did not install`
	t.Run("one object", func(t *testing.T) {
		judge(t, map[string]string{"a.denied": byPolicy, "a.created": byPolicy, "a.other": "pass"})
	})
	t.Run("catalogue", func(t *testing.T) { onlyInconclusive(t, admin, "no-subjects") })

	webhooks := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "down.example.com", SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/nobody-listens")}, Rules: []admissionv1.RuleWithOperations{rule("namespaces")},
	}}}
	webhooks, err := admissions.ValidatingWebhookConfigurations().Create(t.Context(), webhooks, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitUntilRefused(t, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "subject"}}, dryRun)
		return err
	})
	byWebhook := `inconclusive refused by webhook "down.example.com", which this run did not install`
	everything := map[string]string{"a.denied": byWebhook, "a.created": byWebhook, "a.other": byWebhook}
	t.Run("namespaces", func(t *testing.T) { judge(t, everything) })

	webhooks.Webhooks[0].Rules = []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}}
	if _, err = admissions.ValidatingWebhookConfigurations().Update(t.Context(), webhooks, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUntilRefused(t, func(ctx context.Context) error {
		_, err := client.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "subject"}}, dryRun)
		return err
	})
	t.Run("everything", func(t *testing.T) { judge(t, everything) })
	left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || slices.ContainsFunc(left.Items, func(one corev1.Namespace) bool { return strings.HasPrefix(one.Name, "at-") }) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// onlyInconclusive fails if a policy that refuses most scenarios of the catalogue makes one fail, or if one is
// inconclusive for a reason without the name of the policy.
func onlyInconclusive(t *testing.T, admin *rest.Config, name string) {
	t.Helper()
	few, err := engine.Select(catalogue(t), []string{"order", "response"}, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: providers.RESTConfig{Config: admin}})
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range out.Outcomes {
		bad := outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored
		if bad || outcome.Verdict == framework.Inconclusive && !strings.Contains(outcome.Reason, name) {
			t.Errorf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason)
		}
	}
	if out.Summary.Inconclusive < 10 {
		t.Errorf("%d scenarios are inconclusive, want most of those that create a ConfigMap subject: %+v", out.Summary.Inconclusive, out.Summary)
	}
}
