package apiserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/fence"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// createForeign creates what another client could, and removes it after the test.
func createForeign(t *testing.T, on *Target, text string) {
	t.Helper()
	for _, manifest := range manifests(t, text) {
		kind, err := object.Kind(manifest)
		if err != nil {
			t.Fatal(err)
		}
		res, err := on.client.Resources.Of(kind)
		if err != nil {
			t.Fatal(err)
		}
		o := client.Object{Resource: res, Name: (&unstructured.Unstructured{Object: manifest}).GetName()}
		if _, err := on.client.Create(t.Context(), o, manifest); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := on.client.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// Foreign has what other clients installed, and nothing of a run. Explain says what it does about a request.
func TestForeign(t *testing.T) {
	on := newTarget(t, Options{Run: "hasforeign"})
	const id = "at-hasforeign-00001"
	sandbox := newSandbox(t, on, SandboxOptions{ID: id})
	installAll(t, on, sandbox, watcher, nil)
	createForeign(t, on, `
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingWebhookConfiguration
  metadata: {name: hasforeign-theirs}
  webhooks:
  - {name: all.theirs.example.com, failurePolicy: Ignore, timeoutSeconds: 1, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1"}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: at-hasforeign-00001}}, rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}
  - {name: none.theirs.example.com, failurePolicy: Ignore, timeoutSeconds: 1, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1"}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}, rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}
`)
	found, err := on.Foreign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, manifest := range found {
		names = append(names, (&unstructured.Unstructured{Object: manifest}).GetName())
	}
	if !slices.Contains(names, "hasforeign-theirs") || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "at-") }) {
		t.Errorf("got %v; want hasforeign-theirs and nothing of a run", names)
	}
	findings, err := on.Explain(t.Context(), "", create("v1", "ConfigMap", id, "subject"), framework.Result{})
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]reach.Effect{}
	for _, finding := range findings {
		effects[finding.Webhook] = finding.Effect
	}
	if effects["all.theirs.example.com"] != reach.EffectCalled || effects["none.theirs.example.com"] != reach.EffectNone {
		t.Errorf("got %v; want all.theirs.example.com called, none.theirs.example.com not", effects)
	}
}

// A policy of another client refuses the sign of life of a run, or the dry-run request of the fence: Prepare names it.
func TestPrepare(t *testing.T) {
	for run, namespace := range map[string]string{"preparesign": "run", "prepareprobe": "fence"} {
		t.Run(namespace, func(t *testing.T) {
			on := newTarget(t, Options{Run: run})
			createForeign(t, on, strings.NewReplacer("RUN", run, "NAMESPACE", namespace).Replace(`
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: RUN-theirs}
  spec:
    matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: ["*"], apiVersions: ["*"], resources: [configmaps]}]}
    validations: [{expression: 'namespaceObject.metadata.name != "at-RUN-NAMESPACE"'}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicyBinding
  metadata: {name: RUN-theirs}
  spec: {policyName: RUN-theirs, validationActions: [Deny]}
`))
			sentinel := newTarget(t, Options{Run: "after" + run})
			if err := sentinel.fences.Wait(t.Context(), fence.Kinds{ValidatingPolicies: true}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err := on.Prepare(t.Context())
			var status apierrors.APIStatus
			if !errors.As(err, &status) || !strings.Contains(status.Status().Message, "'"+run+"-theirs'") || time.Since(began) > 15*time.Second {
				t.Errorf("got %v after %s", err, time.Since(began))
			}
		})
	}
	if err := newTarget(t, Options{Run: "prepares"}).Prepare(t.Context()); err != nil {
		t.Error(err)
	}
}

// On an API server without other clients, one run is active at a time.
func TestOneRunAtATime(t *testing.T) {
	config := testserver.Own(t)
	first := newTarget(t, Options{Config: config, Run: "firstatatime", Disposable: true, Served: true})
	newSandbox(t, first, SandboxOptions{ID: "at-firstatatime-00001"})
	second := newTarget(t, Options{Config: config, Run: "secondatatime", Disposable: true, Outlives: true})
	if err := second.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "run firstatatime") || !strings.Contains(err.Error(), "is active on this API server") {
		t.Errorf("got %v, want an error that names the first run", err)
	}
	if err := newTarget(t, Options{Config: config, Run: "thirdatatime"}).Prepare(t.Context()); err != nil {
		t.Errorf("with other clients: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		lacks     target.Lacks
		effective time.Duration
		info      framework.TargetInfo
		want      []string
	}{
		"everything": {
			effective: 120 * time.Millisecond, info: framework.TargetInfo{FeatureGates: map[string]bool{}, Capabilities: framework.Capabilities()},
			want: []string{"the API server has dry run; a configuration is effective after 120ms"},
		},
		"little": {
			lacks: target.Lacks{target.Narrowing: "n", target.Warnings: "w", "admission of ConfigMap": "c"},
			want: []string{
				"the API server has dry run",
				"the API server lacks admission of ConfigMap (c): scenarios that need it are unsupported",
				"the API server lacks narrowing (n): scenarios run one at a time",
				"the API server lacks warnings (w): scenarios that need it are unsupported",
				"the API server shows no metrics: a failure that a disabled feature gate or plugin can explain is inconclusive",
				"this run lacks audit, webhook-credentials, hook-service, hooks-at-443, controllers: scenarios that need them are unsupported",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, describe(test.lacks, test.effective, test.info)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whether webhooks are called for reviews is what the feature gate says, or else the version: a server does not list
// the gate before 1.37, and some day no longer.
func TestWebhooksForReviews(t *testing.T) {
	t.Parallel()
	gate := func(on bool) map[string]bool {
		return map[string]bool{"ExcludeAdmissionWebhookVirtualResources": on}
	}
	for name, test := range map[string]struct {
		server framework.TargetInfo
		want   bool
	}{
		"1.36":                   {framework.TargetInfo{ServerVersion: "v1.36.3", FeatureGates: map[string]bool{"Other": true}}, true},
		"1.37":                   {framework.TargetInfo{ServerVersion: "v1.37.2", FeatureGates: gate(true)}, false},
		"1.37 with the gate off": {framework.TargetInfo{ServerVersion: "v1.37.2", FeatureGates: gate(false)}, true},
		"without the gate":       {framework.TargetInfo{ServerVersion: "v1.41.0", FeatureGates: map[string]bool{"Other": true}}, false},
		"gates not known, 1.35":  {framework.TargetInfo{ServerVersion: "v1.35.4+k3s1"}, true},
		"gates not known, 1.38":  {framework.TargetInfo{ServerVersion: "v1.38.0"}, false},
		"nothing known":          {framework.TargetInfo{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := webhooksForReviews(test.server); got != test.want {
				t.Errorf("webhooksForReviews = %t, want %t", got, test.want)
			}
		})
	}
}
