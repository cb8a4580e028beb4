package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/hack/bystander"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
	"github.com/admissiontest/admissiontest/scenarios"
)

// catalogue returns every scenario without a server profile.
func catalogue(t *testing.T) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	var out []scenario.Scenario
	for _, s := range all {
		if s.Spec.Server == nil {
			out = append(out, s)
		}
	}
	return out
}

// spying is a provider that looks for requests of the bystander among those that reached
// a Hook.
type spying struct {
	providers.RESTConfig
	mu         sync.Mutex
	recordings []*hook.Recording
	calls      int
	foreign    []string
}

func (s *spying) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	opened, err := s.RESTConfig.Start(ctx, options)
	return &spied{Target: opened, by: s}, err
}

type spied struct {
	target.Target
	by *spying
}

// NewSandbox records the calls of the Sandbox.
func (s *spied) NewSandbox(ctx context.Context, options target.SandboxOptions) (target.Sandbox, error) {
	sandbox, err := s.Target.NewSandbox(ctx, options)
	if err == nil {
		s.by.mu.Lock()
		s.by.recordings = append(s.by.recordings, sandbox.Record())
		s.by.mu.Unlock()
	}
	return sandbox, err
}

// Close looks at the calls.
func (s *spied) Close(ctx context.Context) error {
	for _, recording := range s.by.recordings {
		calls := recording.Calls()
		s.by.calls += len(calls)
		for _, call := range calls {
			if text := fmt.Sprint(call.Request()); strings.Contains(text, bystander.Prefix) {
				s.by.foreign = append(s.by.foreign, call.Webhook+": "+text)
			}
		}
	}
	return s.Target.Close(ctx)
}

// wantAllPass fails for each scenario that did not pass, unless it needs a capability that
// a cluster does not have.
func wantAllPass(t *testing.T, r report.Report, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	for _, outcome := range r.Outcomes {
		if outcome.Verdict != framework.Pass && outcome.Verdict != framework.Unsupported {
			t.Errorf("%s: %s: %s", outcome.Name, outcome.Verdict, outcome.Reason)
		}
	}
	if r.Summary.Pass < r.Summary.Total*2/3 { // the others need a server without other clients, or controllers
		t.Errorf("%d of %d pass", r.Summary.Pass, r.Summary.Total)
	}
}

// wantNothingLeft fails when Cleanup finds something.
func wantNothingLeft(t *testing.T, admin *rest.Config) {
	t.Helper()
	left, err := apiserver.Cleanup(t.Context(), admin, apiserver.CleanupOptions{})
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	// Objects whose namespace is gone stay in storage.
	orphan := func(kind, namespace, name string) {
		if strings.HasPrefix(namespace, runid.Prefix("")) || strings.HasPrefix(namespace, providers.RelayPrefix) {
			t.Errorf("orphaned: %s %s in namespace %s, which is gone", kind, name, namespace)
		}
	}
	accounts, accountsErr := client.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
	secrets, secretsErr := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	pods, podsErr := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err := errors.Join(accountsErr, secretsErr, podsErr); err != nil {
		t.Fatal(err)
	}
	for _, one := range accounts.Items {
		orphan("ServiceAccount", one.Namespace, one.Name)
	}
	for _, one := range secrets.Items {
		orphan("Secret", one.Namespace, one.Name)
	}
	for _, one := range pods.Items {
		orphan("Pod", one.Namespace, one.Name)
	}
}

// bystanders is the number of concurrent requests of another client.
const bystanders = 8

// busyControllers is how long a controller may take while the namespaces of two runs and the objects of another client are
// before it in its queue.
const busyControllers = 3 * time.Minute

// withoutSeconds returns the catalogue without the scenarios about timeouts, which are of a second: for tests in
// which several clients share the processors.
func withoutSeconds(t *testing.T) []scenario.Scenario {
	t.Helper()
	return slices.DeleteFunc(catalogue(t), func(s scenario.Scenario) bool { return s.Area == "timeout" })
}

// With the rights of docs/rbac.yaml the catalogue passes, while another run and another
// client use the API server, and next to the namespace of a killed run. It does not
// disturb the other client.
func harm(t *testing.T, admin *rest.Config, objects int) {
	config, client := operator(t, admin, transportRole)
	_, err := client.CoreV1().Namespaces().Apply(t.Context(), corev1apply.Namespace("at-killed-001").WithLabels(map[string]string{apiserver.RunLabel: "killed", apiserver.ScenarioLabel: "at-killed-001"}), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := bystander.New(t.Context(), config) // with the same user: the Hooks do not ignore its requests
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := other.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.Write(t.Context(), min(objects, 500), bystanders)
	before := other.Take()
	if err := before.Check(); err != nil {
		t.Fatalf("without a run: %v", err)
	}

	spy := &spying{RESTConfig: providers.RESTConfig{Config: config, Transport: providers.Transport{Mode: framework.TransportURL}}}
	var second report.Report
	var secondErr error
	var work sync.WaitGroup
	work.Go(func() { other.Write(t.Context(), objects, bystanders) })
	work.Go(func() { // another run at the same time
		few, err := engine.Select(catalogue(t), []string{"order", "vap", "match"}, engine.Filter{})
		if err == nil {
			second, err = engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: providers.RESTConfig{Config: config}, Patience: busyControllers})
		}
		secondErr = err
	})
	// Who may not read every kind may not create a policy with a paramKind that does not exist.
	all := append(withoutSeconds(t), reaching(t, "hostile.unknown-parameter-kind-for-everything")...)
	first, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: spy, Parallel: 16, Patience: busyControllers})
	work.Wait()
	wantAllPass(t, first, err)
	wantAllPass(t, second, secondErr)
	during := other.Take()
	if err := during.Check(); err != nil {
		t.Error(err)
	}
	for _, line := range spy.foreign {
		t.Errorf("a request of another client reached a Hook: %s", line)
	}
	if spy.calls < 100 {
		t.Errorf("%d calls of Hooks were recorded; want all of them", spy.calls)
	}
	t.Logf("%d requests for %d objects during two runs, median %s, longest %s; without a run %s and %s",
		len(during.Durations), during.Objects, during.Median().Round(10*time.Microsecond), during.Longest().Round(time.Millisecond),
		before.Median().Round(10*time.Microsecond), before.Longest().Round(time.Millisecond))
	if left, err := apiserver.Cleanup(t.Context(), config, apiserver.CleanupOptions{}); err != nil || len(left) != 1 || left[0] != "namespaces/at-killed-001" {
		t.Errorf("left: %v, %v; want the namespace that existed before", left, err)
	}
	wantNothingLeft(t, admin)
}

func TestHarm(t *testing.T) {
	t.Parallel()
	admin := testserver.Own(t)
	t.Run("rights", func(t *testing.T) { eachRight(t, admin) })
	t.Run("few rights", func(t *testing.T) { coreRights(t, admin) })
	t.Run("confined", func(t *testing.T) { confineTest(t, admin) })
	t.Run("other clients", func(t *testing.T) { harm(t, admin, 200) })
	t.Run("held", func(t *testing.T) { heldNamespace(t, admin) })
	t.Run("namespaces", func(t *testing.T) { namespacesTest(t, admin) })
	t.Run("no rights", func(t *testing.T) { strangerTest(t, admin) })
}

// kindConfig returns the configuration of the kind cluster for tests.
func kindConfig(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv("ADMISSIONTEST_KIND_KUBECONFIG")
	if path == "" {
		t.Skip("ADMISSIONTEST_KIND_KUBECONFIG is not set: it needs a kind cluster: make test-kind")
	}
	admin, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	admin.QPS = -1
	return admin
}

func TestKindHarm(t *testing.T) {
	admin := kindConfig(t)
	t.Run("rights", func(t *testing.T) { eachRight(t, admin) })
	t.Run("few rights", func(t *testing.T) { coreRights(t, admin) })
	t.Run("confined", func(t *testing.T) { confineTest(t, admin) })
	t.Run("rights for service", func(t *testing.T) {
		found := providers.LocalKind(t.Context(), admin)
		if found == nil {
			t.Fatal("the cluster is not a kind cluster of this machine")
		}
		serviceRights(t, admin, found.Name())
	})
	t.Run("other clients", func(t *testing.T) { harm(t, admin, 2000) })
	t.Run("hostile tenant", func(t *testing.T) { hostileTest(t, admin) })
	t.Run("held", func(t *testing.T) { heldNamespace(t, admin) })
	t.Run("namespaces", func(t *testing.T) { namespacesTest(t, admin) })
	t.Run("no rights", func(t *testing.T) { strangerTest(t, admin) })
}

// A user without rights gets a list of all missing rights that every run needs.
func strangerTest(t *testing.T, admin *rest.Config) {
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	began := time.Now()
	_, err := engine.Run(t.Context(), engine.Options{Scenarios: catalogue(t), Provider: providers.RESTConfig{Config: config}})
	if !errors.Is(err, apiserver.ErrRightsMissing) {
		t.Fatalf("Run = %v; want %v", err, apiserver.ErrRightsMissing)
	}
	for _, part := range []string{"user stranger: rights are missing", "create namespaces", "list endpointslices.discovery.k8s.io in namespace default", `"admissiontest rbac"`, "nothing was created"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q: %v", part, err)
		}
	}
	t.Logf("reported in %s", time.Since(began).Round(time.Millisecond))
	// If reviews are refused too, no right counts as missing.
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return refusing{inner} })
	if err := (providers.RESTConfig{Config: config}).Check(t.Context()); err != nil {
		t.Errorf("Check without reviews = %v", err)
	}
}

// refusing refuses reviews.
type refusing struct{ http.RoundTripper }

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, "/selfsubject") {
		return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Body: http.NoBody, Request: request}, nil
	}
	return r.RoundTripper.RoundTrip(request)
}

// A user who may not list everything leaves a namespace to the namespace controller, and
// removes only the finalizers of scenarios.
func heldNamespace(t *testing.T, admin *rest.Config) {
	config, client := operator(t, admin, transportRole)
	labels := map[string]string{apiserver.RunLabel: "held", apiserver.ScenarioLabel: "at-held-001"}
	for _, finalizers := range [][]corev1.FinalizerName{{"kubernetes", "example.com/hold"}, {"example.com/hold"}} {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "at-held-", Labels: labels}, Spec: corev1.NamespaceSpec{Finalizers: finalizers}}
		made, err := client.CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
		if _, err := client.CoreV1().ConfigMaps(made.Name).Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := apiserver.Cleanup(t.Context(), config, apiserver.CleanupOptions{Run: "held"})
	if err != nil || len(removed) != 2 {
		t.Errorf("Cleanup = %v, %v; want both namespaces", removed, err)
	}
	wantNoOrphans(t, client)
	wantNothingLeft(t, admin)
}

func wantNoOrphans(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	maps, err := client.CoreV1().ConfigMaps("").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range maps.Items {
		if one.Name == "held" {
			t.Errorf("orphaned: ConfigMap %s in namespace %s", one.Name, one.Namespace)
		}
	}
}

// ofNamespaces uses the namespaces of a scenario wherever a scenario can name one: its webhook
// and its policy decide in all of them, and the selectors see their labels.
const ofNamespaces = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.namespaces}
spec:
  level: MUST
  requirement: A requirement.
  namespaces:
    - {name: blue, labels: {team: blue, of: $(id)}, annotations: {peer: $(namespace.red)}}
    - {name: red}
  given:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: given, namespace: $(namespace.red)}}
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: a}
      webhooks:
        - name: every.example.com
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        - name: blue.example.com
          namespaceSelector: {matchLabels: {team: blue, of: $(id), kubernetes.io/metadata.name: $(namespace.blue)}}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: p}
      spec:
        matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]}
        validations: [{expression: "namespaceObject.metadata.?annotations['peer'].orValue('') == ''", message: it has a peer}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: p}
      spec: {policyName: p, validationActions: [Deny]}
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $(namespace.blue)}}
      then: {calls: {anyOrder: [every.example.com, blue.example.com]}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $(namespace.red)}}
      then: {calls: [every.example.com]}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      then: {calls: [every.example.com]}
    - create: {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: $(namespace.red)}}
    - create: {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: $(namespace.blue)}}
      then: {code: 422, message: it has a peer}
    - get: {apiVersion: v1, kind: Namespace, name: $(namespace.blue)}
      then: {object: {metadata: {name: $(id)-blue, annotations: {peer: $(id)-red}}}}
`

// The namespaces of a scenario are on a cluster while it runs, and no longer.
func namespacesTest(t *testing.T, admin *rest.Config) {
	config, _ := operator(t, admin, transportRole)
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"a.yaml": {Data: []byte(ofNamespaces)}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios,
		Provider:  providers.RESTConfig{Config: config, Transport: providers.Transport{Mode: framework.TransportURL}},
	})
	wantAllPass(t, got, err)
	wantNothingLeft(t, admin)
}

// A maker's own API server, which is only for tests, runs the scenarios without isolation, and has nothing of them
// afterwards. Without the flag, they are unsupported there, and the reason says what to do.
func TestDisposable(t *testing.T) {
	t.Parallel()
	server, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	before := everythingOf(t, server.Config)
	var some []scenario.Scenario
	open := 0
	for _, s := range catalogue(t) {
		if s.Spec.Isolation == scenario.IsolationNone {
			open++
		}
		if s.Spec.Isolation == scenario.IsolationNone || s.Area == "order" {
			some = append(some, s)
		}
	}
	r, err := engine.Run(t.Context(), engine.Options{Provider: providers.Kubeconfig{Path: kubeconfig, Disposable: true}, Scenarios: some})
	wantAllPass(t, r, err)
	if open == 0 || r.Summary.Pass < open {
		t.Errorf("%v; want %d scenarios without isolation to pass", r.Summary, open)
	}
	wantNothingLeft(t, server.Config)

	r, err = engine.Run(t.Context(), engine.Options{Provider: providers.Kubeconfig{Path: kubeconfig}, Scenarios: some})
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range r.Outcomes {
		if outcome.Verdict == framework.Unsupported && strings.Contains(outcome.Reason, "--disposable") {
			open--
		}
	}
	if open > 0 { // others run alone too
		t.Errorf("%d scenarios without isolation are not unsupported with the flag in their reason", open)
	}
	wantNothingLeft(t, server.Config)
	if left := everythingOf(t, server.Config); !slices.Equal(left, before) {
		t.Errorf("left: %v; before: %v", left, before)
	}
}
