package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// victim is the namespace, and the prefix of the names, of a tenant that a hostile tenant
// attacks.
const victim = "hostile-victim"

// hostileTest runs the catalogue, and scenarios that reach for what belongs to others, while
// a hostile tenant labels another tenant's objects as if the run had created them, and calls
// the Hooks without their secret. Nothing of the other tenant changes, all its requests
// succeed, and each verdict is as without the hostile tenant.
func hostileTest(t *testing.T, admin *rest.Config) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	all := withoutSeconds(t)
	alone, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: providers.RESTConfig{Config: admin}})
	wantAllPass(t, alone, err)
	before := victims(t, client)

	attack := &attacker{client: client}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { attack.work(ctx) })
	working.Go(func() { attack.live(ctx) })
	during, err := engine.Run(t.Context(), engine.Options{Scenarios: append(all, reaching(t)...), Provider: &attacked{RESTConfig: providers.RESTConfig{Config: admin}, by: attack}})
	stop()
	working.Wait()
	if err != nil {
		t.Fatal(err)
	}

	sameVerdicts(t, alone, during)
	wantAttacked(t, attack, during)
	if after := describeVictims(t, client); !maps.Equal(before, after) {
		t.Errorf("objects of the other tenant changed: before %v, after %v", before, after)
	}
	wantNothingLeft(t, admin)
}

// reaching returns scenarios that reach for what belongs to others, with some exceptions.
func reaching(t *testing.T, except ...string) []scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(scenario.LoadOptions{FS: os.DirFS("testdata/hostile")})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s scenario.Scenario) bool { return slices.Contains(except, s.Metadata.Name) })
}

// sameVerdicts fails for each scenario whose verdict is another one than it was without the
// hostile tenant, and for each that could reach what belongs to others.
func sameVerdicts(t *testing.T, alone, during report.Report) {
	t.Helper()
	want := map[string]framework.Verdict{
		"hostile.delete-a-tenants-object":               framework.Unsupported,
		"hostile.delete-a-role-of-kubernetes":           framework.Unsupported,
		"hostile.create-in-kube-system":                 framework.Unsupported,
		"hostile.webhook-for-everything":                framework.Unsupported,
		"hostile.missing-parameter-for-everything":      framework.Pass,
		"hostile.unknown-parameter-kind-for-everything": framework.Pass,
	}
	for _, outcome := range alone.Outcomes {
		want[outcome.Name] = outcome.Verdict
	}
	if len(during.Outcomes) != len(want) {
		t.Errorf("got %d outcomes, want %d", len(during.Outcomes), len(want))
	}
	for _, outcome := range during.Outcomes {
		if outcome.Verdict != want[outcome.Name] {
			t.Errorf("%s: %s with a hostile tenant, want %s: %s", outcome.Name, outcome.Verdict, want[outcome.Name], outcome.Reason)
		}
	}
}

// wantAttacked fails if the hostile tenant did too little to be noticed, or if requests of the
// other tenant failed.
func wantAttacked(t *testing.T, attack *attacker, during report.Report) {
	t.Helper()
	attack.mu.Lock()
	defer attack.mu.Unlock()
	if len(attack.labelled) == 0 || attack.posts < 100 || during.ForeignRequests < attack.posts {
		t.Errorf("labels of runs %v, %d calls of Hooks, of which the report counts %d; want at least one run, 100 calls, and all counted", attack.labelled, attack.posts, during.ForeignRequests)
	}
	if attack.admitted > 0 {
		t.Errorf("a Hook answered %d of %d calls without its secret", attack.admitted, attack.posts)
	}
	if attack.lived < 100 || attack.failed != nil {
		t.Errorf("the other tenant created %d objects, want at least 100; error: %v", attack.lived, attack.failed)
	}
	t.Logf("%d calls of Hooks, %d objects of the other tenant", attack.posts, attack.lived)
}

// attacked is a provider that shows the hostile tenant where the Hooks listen.
type attacked struct {
	providers.RESTConfig
	by *attacker
}

func (a *attacked) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	target, err := a.RESTConfig.Start(ctx, options)
	if err == nil {
		address := target.Optional().HookAddress
		a.by.mu.Lock()
		a.by.run, a.by.hooks = target.RunID(), net.JoinHostPort(address.Host, strconv.Itoa(address.Port))
		a.by.mu.Unlock()
	}
	return target, err
}

// attacker is the hostile tenant, and the life of the tenant that it attacks.
type attacker struct {
	client *kubernetes.Clientset

	mu         sync.Mutex
	run, hooks string
	labelled   map[string]bool // IDs of runs
	posts      int             // calls of Hooks that got a response
	admitted   int             // requests with another response than 404
	lived      int             // objects that the other tenant created and deleted
	failed     error           // of the other tenant
}

// work labels the victim's objects and calls the Hooks, until ctx ends.
func (a *attacker) work(ctx context.Context) {
	hostile := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a client that verifies nothing
	defer hostile.CloseIdleConnections()
	large := bytes.Repeat([]byte("a"), 57<<20)
	for n := 0; ctx.Err() == nil; n++ {
		a.mu.Lock()
		run, hooks := a.run, a.hooks
		a.mu.Unlock()
		if run == "" {
			continue
		}
		a.label(ctx, run)
		body := []byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "CREATE", "userInfo": {"username": "tenant"}}}`)
		if n%50 == 49 {
			body = large
		}
		path := fmt.Sprintf("/at-%s-%05d/hook.example.com", run, n%300+1)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+hooks+path, bytes.NewReader(body))
		if err != nil {
			return
		}
		response, err := hostile.Do(request)
		if err != nil {
			continue // the Hooks closed the connection
		}
		_ = response.Body.Close()
		a.mu.Lock()
		a.posts++
		if response.StatusCode != http.StatusNotFound {
			a.admitted++
		}
		a.mu.Unlock()
	}
}

// label labels the victim's objects, once for each run.
func (a *attacker) label(ctx context.Context, run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.labelled[run] {
		return
	}
	patch := []byte(fmt.Sprintf(`{"metadata": {"labels": {%q: %q, %q: "at-%s-00001"}}}`, apiserver.RunLabel, run, apiserver.ScenarioLabel, run))
	_, namespace := a.client.CoreV1().Namespaces().Patch(ctx, victim, types.MergePatchType, patch, metav1.PatchOptions{})
	_, configuration := a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, victim, types.MergePatchType, patch, metav1.PatchOptions{})
	_, object := a.client.CoreV1().ConfigMaps(victim).Patch(ctx, "theirs", types.MergePatchType, patch, metav1.PatchOptions{})
	if namespace == nil && configuration == nil && object == nil {
		if a.labelled == nil {
			a.labelled = map[string]bool{}
		}
		a.labelled[run] = true
	}
}

// live creates and deletes objects of the tenant that is attacked, in its namespace and cluster-scoped, until
// ctx ends.
func (a *attacker) live(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("of-the-tenant-%d", n)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := a.client.CoreV1().ConfigMaps(victim).Create(ctx, object, metav1.CreateOptions{})
		if err == nil {
			err = a.client.CoreV1().ConfigMaps(victim).Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err == nil {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err = a.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		if ctx.Err() != nil {
			return
		}
		a.mu.Lock()
		if a.lived++; err != nil && a.failed == nil {
			a.failed = err
		}
		a.mu.Unlock()
	}
}

// victims creates the objects of the tenant that is attacked and describes them.
func victims(t *testing.T, client *kubernetes.Clientset) map[string]string {
	t.Helper()
	ctx, options, meta := t.Context(), metav1.CreateOptions{}, metav1.ObjectMeta{Name: victim}
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, options)
	if err == nil {
		_, err = client.CoreV1().ConfigMaps(victim).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Data: map[string]string{"a": "b"}}, options)
	}
	if err == nil {
		none, url := admissionv1.SideEffectClassNone, "https://127.0.0.1:1/"
		_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta,
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "theirs.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no-namespace": "has-this"}},
				ClientConfig:      admissionv1.WebhookClientConfig{URL: &url},
				Rules:             []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"CREATE"}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}}}},
			}},
		}, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeVictims(t, client) })
	return describeVictims(t, client)
}

// removeVictims removes what victims created.
func removeVictims(t *testing.T, client *kubernetes.Clientset) {
	ctx := context.WithoutCancel(t.Context())
	if err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, victim, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, victim, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// describeVictims returns the UID of each object that a hostile tenant or scenario goes for,
// and what is in it.
func describeVictims(t *testing.T, client *kubernetes.Clientset) map[string]string {
	t.Helper()
	ctx, options, found := t.Context(), metav1.GetOptions{}, map[string]string{}
	namespace, err := client.CoreV1().Namespaces().Get(ctx, victim, options)
	if err != nil {
		t.Fatal(err)
	}
	found["Namespace"] = fmt.Sprint(namespace.UID, namespace.Status.Phase)
	object, err := client.CoreV1().ConfigMaps(victim).Get(ctx, "theirs", options)
	if err != nil {
		t.Fatal(err)
	}
	found["ConfigMap"] = fmt.Sprint(object.UID, object.Data)
	configuration, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, victim, options)
	if err != nil {
		t.Fatal(err)
	}
	found["ValidatingWebhookConfiguration"] = fmt.Sprint(configuration.UID, configuration.Generation)
	role, err := client.RbacV1().ClusterRoles().Get(ctx, "system:discovery", options)
	if err != nil {
		t.Fatal(err)
	}
	found["ClusterRole"] = fmt.Sprint(role.UID, role.ResourceVersion)
	inSystem, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: apiserver.RunLabel})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	found["ConfigMaps in kube-system"] = strconv.Itoa(len(inSystem.Items))
	return found
}

func TestHostileTenant(t *testing.T) {
	t.Parallel()
	hostileTest(t, testserver.Own(t))
}

// refuseSubjects installs a policy that refuses every ConfigMap of the name that most
// scenarios use, and waits until the API server acts on it.
func refuseSubjects(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	to, options, meta := client.AdmissionregistrationV1(), metav1.CreateOptions{}, metav1.ObjectMeta{Name: "no-subjects"}
	_, err := to.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"CREATE"}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "object.metadata.name != 'subject'"}},
	}}, options)
	if err == nil {
		_, err = to.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, configMap("subject"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
