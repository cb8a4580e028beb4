package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/bystander"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/relay"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

// transportRole is what only transport service needs.
const transportRole = "admissiontest-transport-service"

// manifests returns docs/rbac.yaml, by kind.
func manifests(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("../../docs/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string][]string{}
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatal(err)
		}
		byKind[head.Kind] = append(byKind[head.Kind], text)
	}
	return byKind
}

func decoded[T any](t *testing.T, texts []string) []*T {
	t.Helper()
	var out []*T
	for _, text := range texts {
		one := new(T)
		if err := yaml.UnmarshalStrict([]byte(text), one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// operator applies docs/rbac.yaml, but not the roles left out, and returns a
// configuration with a token of its account.
func operator(t *testing.T, admin *rest.Config, leaveOut ...string) (*rest.Config, *kubernetes.Clientset) {
	t.Helper()
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	made := manifests(t)
	left := strings.Join(leaveOut, " ")
	must := func(err error) {
		t.Helper()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	_, err = client.CoreV1().Namespaces().Apply(ctx, corev1apply.Namespace("admissiontest"), metav1.ApplyOptions{FieldManager: "test"})
	must(err)
	_, err = client.CoreV1().ServiceAccounts("admissiontest").Apply(ctx, corev1apply.ServiceAccount("admissiontest", "admissiontest"), metav1.ApplyOptions{FieldManager: "test"})
	must(err)
	for _, role := range decoded[rbacv1.ClusterRole](t, made["ClusterRole"]) {
		_, err = client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		}
		must(err)
	}
	for _, role := range decoded[rbacv1.Role](t, made["Role"]) {
		_, err = client.RbacV1().Roles(role.Namespace).Create(ctx, role, metav1.CreateOptions{})
		must(err)
	}
	for _, binding := range decoded[rbacv1.ClusterRoleBinding](t, made["ClusterRoleBinding"]) {
		if strings.Contains(left, binding.RoleRef.Name) {
			err = client.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				must(err)
			}
		} else {
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
			must(err)
		}
	}
	for _, binding := range decoded[rbacv1.RoleBinding](t, made["RoleBinding"]) {
		_, err = client.RbacV1().RoleBindings(binding.Namespace).Create(ctx, binding, metav1.CreateOptions{})
		must(err)
	}
	token, err := client.CoreV1().ServiceAccounts("admissiontest").CreateToken(ctx, "admissiontest", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	return config, client
}

// catalogue returns every scenario without a server profile.
func catalogue(t *testing.T) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(scenarios.FS)
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
	RESTConfig
	mu         sync.Mutex
	recordings []*hook.Recording
	calls      int
	foreign    []string
}

func (s *spying) Start(ctx context.Context, options engine.StartOptions) (engine.Target, error) {
	if options.Profile != nil {
		return nil, engine.ErrNoProfiles
	}
	opened, err := s.open(ctx, options)
	return &spied{Target: opened, by: s}, err
}

type spied struct {
	engine.Target
	by *spying
}

// NewSandbox records the calls of the Sandbox.
func (s *spied) NewSandbox(ctx context.Context, options engine.SandboxOptions) (engine.Sandbox, error) {
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
	if r.Summary.Pass < r.Summary.Total*7/8 {
		t.Errorf("%d of %d pass", r.Summary.Pass, r.Summary.Total)
	}
}

// wantNothingLeft fails when Cleanup finds something.
func wantNothingLeft(t *testing.T, admin *rest.Config) {
	t.Helper()
	left, err := cluster.Cleanup(t.Context(), admin, cluster.CleanupOptions{})
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	// Objects whose namespace is gone stay in storage.
	orphan := func(kind, namespace, name string) {
		if strings.HasPrefix(namespace, "at-") || strings.HasPrefix(namespace, relay.NamespacePrefix) {
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

// With the rights of docs/rbac.yaml the catalogue passes, while another run and another
// client use the API server, and next to the namespace of a killed run. It does not
// disturb the other client.
func harm(t *testing.T, admin *rest.Config, objects int) {
	config, client := operator(t, admin, transportRole)
	_, err := client.CoreV1().Namespaces().Apply(t.Context(), corev1apply.Namespace("at-killed-001").WithLabels(map[string]string{cluster.RunLabel: "killed", cluster.ScenarioLabel: "at-killed-001"}), metav1.ApplyOptions{FieldManager: "test"})
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

	spy := &spying{RESTConfig: RESTConfig{Config: config, Transport: Transport{Mode: framework.TransportURL}}}
	var second report.Report
	var secondErr error
	var work sync.WaitGroup
	work.Go(func() { other.Write(t.Context(), objects, bystanders) })
	work.Go(func() { // another run at the same time
		few, err := engine.Select(catalogue(t), []string{"order", "vap", "match"}, engine.Filter{})
		if err == nil {
			second, err = engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: RESTConfig{Config: config}})
		}
		secondErr = err
	})
	// Three clients share the processors: scenarios about seconds are left out.
	first, err := engine.Run(t.Context(), engine.Options{
		Scenarios: slices.DeleteFunc(catalogue(t), func(s scenario.Scenario) bool { return s.Area == "timeout" }),
		Provider:  spy, Parallel: 16,
	})
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
	if left, err := cluster.Cleanup(t.Context(), config, cluster.CleanupOptions{}); err != nil || len(left) != 1 || left[0] != "namespaces/at-killed-001" {
		t.Errorf("left: %v, %v; want the namespace that existed before", left, err)
	}
	wantNothingLeft(t, admin)
}

// Without any rule of docs/rbac.yaml a run ends before it has created anything, and names
// the right.
func eachRight(t *testing.T, admin *rest.Config) {
	config, client := operator(t, admin, transportRole)
	from := RESTConfig{Config: config, Transport: Transport{Mode: framework.TransportURL}}
	all := catalogue(t)
	began := time.Now()
	if err := from.Check(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	t.Logf("checked all rights in %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	if err := (RESTConfig{Config: admin}).Check(t.Context(), all); err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("Check for an administrator = %v, in %s", err, time.Since(began))
	}
	t.Logf("those of an administrator in %s", time.Since(began).Round(time.Millisecond))

	made := manifests(t)
	for _, role := range decoded[rbacv1.ClusterRole](t, made["ClusterRole"]) {
		if role.Name == transportRole {
			continue
		}
		for i, rule := range role.Rules {
			less := role.DeepCopy()
			less.Rules = append(less.Rules[:i:i], less.Rules[i+1:]...)
			update(t, client, less)
			wantMissing(t, from, all, rule)
			update(t, client, role)
		}
	}
	for _, role := range decoded[rbacv1.Role](t, made["Role"]) {
		if err := client.RbacV1().Roles(role.Namespace).Delete(t.Context(), role.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wantMissing(t, from, all, role.Rules[0])
		if _, err := client.RbacV1().Roles(role.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	wantNothingLeft(t, admin)
}

// With transport service, its role and that of the engine are enough for scenarios about
// ConfigMaps; without any rule of it nothing is created.
func serviceRights(t *testing.T, admin *rest.Config, name string) {
	config, client := operator(t, admin, "admissiontest-catalogue", "admissiontest-impersonation")
	few, err := engine.Select(catalogue(t), []string{"warning.*", "response.*"}, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	few = slices.DeleteFunc(few, func(s scenario.Scenario) bool {
		return slices.ContainsFunc(engine.Requests(s), func(request framework.Request) bool {
			kind := request.Kind.Kind
			return request.User != nil || kind != "ConfigMap" && kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration"
		})
	})
	c, err := kind.Use(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	image, err := loadImage(t.Context(), c, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	from := RESTConfig{Config: config, Transport: Transport{Mode: framework.TransportService, HookImage: image}}
	r, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: from})
	wantAllPass(t, r, err)
	t.Logf("%d scenarios with transport service", len(r.Outcomes))
	for _, role := range decoded[rbacv1.ClusterRole](t, manifests(t)["ClusterRole"]) {
		if role.Name != transportRole {
			continue
		}
		for i, rule := range role.Rules {
			less := role.DeepCopy()
			less.Rules = append(less.Rules[:i:i], less.Rules[i+1:]...)
			update(t, client, less)
			want := rule.Verbs[0] + " " + rule.Resources[0]
			if err := awaitDenied(t, client, rule); err != nil {
				t.Error(err)
			}
			if _, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: from}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("without the rule %v: %v; want %q in it", rule, err, want)
			}
			update(t, client, role)
		}
	}
	wantNothingLeft(t, admin)
}

// awaitDenied waits until the API server acts on the removal of a rule.
func awaitDenied(t *testing.T, client *kubernetes.Clientset, rule rbacv1.PolicyRule) error {
	t.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:admissiontest:admissiontest",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: "any",
			},
		}}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			return err
		}
	}
	return fmt.Errorf("the rule %v is not gone after ten seconds", rule)
}

// update replaces a role.
func update(t *testing.T, client *kubernetes.Clientset, role *rbacv1.ClusterRole) {
	t.Helper()
	if _, err := client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantMissing fails unless a run ends and names a right of a rule that was removed. The
// API server takes a moment to act on the removal.
func wantMissing(t *testing.T, from RESTConfig, all []scenario.Scenario, rule rbacv1.PolicyRule) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if _, err = engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: checked{from}}); errors.Is(err, cluster.ErrRightsMissing) {
			break
		}
	}
	if !errors.Is(err, cluster.ErrRightsMissing) {
		t.Errorf("without the rule %v: %v; want %v", rule, err, cluster.ErrRightsMissing)
		return
	}
	verb, resource := rule.Verbs[0], rule.Resources[0]
	if want := verb + " " + resource; !strings.Contains(err.Error(), want) {
		t.Errorf("without the rule %v: %v; want %q in it", rule, err, want)
	}
}

// errStarted marks a run that would have started.
var errStarted = errors.New("started")

// checked is a provider that only checks whether scenarios can run.
type checked struct{ RESTConfig }

func (checked) Start(context.Context, engine.StartOptions) (engine.Target, error) {
	return nil, errStarted
}

// servedConfig starts an API server.
func servedConfig(t *testing.T) *rest.Config {
	t.Helper()
	found, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	server, err := envtest.Start(t.Context(), envtest.Options{Assets: found})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server.Config
}

func TestHarm(t *testing.T) {
	admin := servedConfig(t)
	t.Run("rights", func(t *testing.T) { eachRight(t, admin) })
	t.Run("other clients", func(t *testing.T) { harm(t, admin, 200) })
	t.Run("held", func(t *testing.T) { heldNamespace(t, admin) })
	t.Run("no rights", func(t *testing.T) { strangerTest(t, admin) })
}

func TestKindHarm(t *testing.T) {
	path := os.Getenv("ADMISSIONTEST_KIND_KUBECONFIG")
	if path == "" {
		t.Skip("ADMISSIONTEST_KIND_KUBECONFIG is not set: it needs a kind cluster: make test-kind")
	}
	admin, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	admin.QPS = -1
	t.Run("rights", func(t *testing.T) { eachRight(t, admin) })
	t.Run("rights for service", func(t *testing.T) {
		found := localKind(t.Context(), admin)
		if found == nil {
			t.Fatal("the cluster is not a kind cluster of this machine")
		}
		serviceRights(t, admin, found.Name())
	})
	t.Run("other clients", func(t *testing.T) { harm(t, admin, 2000) })
	t.Run("held", func(t *testing.T) { heldNamespace(t, admin) })
	t.Run("no rights", func(t *testing.T) { strangerTest(t, admin) })
}

// A user without rights gets a list of all missing rights.
func strangerTest(t *testing.T, admin *rest.Config) {
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	began := time.Now()
	_, err := engine.Run(t.Context(), engine.Options{Scenarios: catalogue(t), Provider: RESTConfig{Config: config}})
	if !errors.Is(err, cluster.ErrRightsMissing) {
		t.Fatalf("Run = %v; want %v", err, cluster.ErrRightsMissing)
	}
	for _, part := range []string{"user stranger: rights are missing", "create namespaces", "list endpointslices.discovery.k8s.io in namespace default", "impersonate groups system:masters", "docs/rbac.yaml", "nothing was created"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q: %v", part, err)
		}
	}
	t.Logf("reported in %s", time.Since(began).Round(time.Millisecond))
	// If reviews are refused too, no right counts as missing.
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return refusing{inner} })
	if err := (RESTConfig{Config: config}).Check(t.Context(), catalogue(t)); err != nil {
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
