package e2e

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// confinePolicy is the first part of the names of the policies of docs/confine.yaml.
const confinePolicy = "admissiontest-confine"

// confined applies docs/confine.yaml until the end of the test, and waits until the API
// server acts on it.
func confined(t *testing.T, admin, client *kubernetes.Clientset) {
	t.Helper()
	data, err := os.ReadFile("../../docs/confine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	to, ctx := admin.AdmissionregistrationV1(), context.WithoutCancel(t.Context())
	byKind := documents(t, string(data))
	t.Cleanup(func() { waitConfined(t, client, false) })
	for _, policy := range decoded[admissionv1.ValidatingAdmissionPolicy](t, byKind["ValidatingAdmissionPolicy"]) {
		if _, err := to.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.ValidatingAdmissionPolicies().Delete(ctx, policy.Name, metav1.DeleteOptions{}) })
	}
	for _, binding := range decoded[admissionv1.ValidatingAdmissionPolicyBinding](t, byKind["ValidatingAdmissionPolicyBinding"]) {
		if _, err := to.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.ValidatingAdmissionPolicyBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}) })
	}
	waitConfined(t, client, true)
}

// waitConfined waits until the API server acts on the policies, or on their removal.
func waitConfined(t *testing.T, client *kubernetes.Clientset, wanted bool) {
	t.Helper()
	ctx, all := context.WithoutCancel(t.Context()), []string{metav1.DryRunAll}
	var create, remove error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		_, create = client.CoreV1().ConfigMaps("kube-system").Create(ctx, configMap("probe"), metav1.CreateOptions{DryRun: all})
		remove = client.CoreV1().ConfigMaps("kube-system").Delete(ctx, "extension-apiserver-authentication", metav1.DeleteOptions{DryRun: all})
		if (create != nil) == wanted && (remove != nil) == wanted {
			return
		}
	}
	t.Fatalf("after ten seconds: create: %v, delete: %v; want refusals by %s: %t", create, remove, confinePolicy, wanted)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// confineTest: with docs/confine.yaml the catalogue passes, and the account cannot write
// what belongs to others.
func confineTest(t *testing.T, admin *rest.Config) {
	config, client := operator(t, admin, transportRole)
	own, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	confined(t, client, own)
	t.Run("others", func(t *testing.T) { wantRefused(t, client, config) })
	t.Run("catalogue", func(t *testing.T) {
		r, err := engine.Run(t.Context(), engine.Options{
			Scenarios: catalogue(t),
			Provider:  providers.RESTConfig{Config: config, Transport: providers.Transport{Mode: framework.TransportURL}},
		})
		// A policy with a namespaceSelector, as that of confine.yaml, refuses what is in a namespace that does not exist.
		r.Outcomes = slices.DeleteFunc(r.Outcomes, func(o report.Outcome) bool {
			return o.Name == "nslifecycle.update-without-a-namespace" && o.Verdict == framework.Inconclusive && strings.Contains(o.Reason, confinePolicy)
		})
		wantAllPass(t, r, err)
		t.Logf("%d of %d scenarios pass", r.Summary.Pass, r.Summary.Total)
		wantNothingLeft(t, admin)
	})
}

// attempt is a request of the confined account.
type attempt struct {
	name string
	send func(context.Context, *kubernetes.Clientset) error
}

// foreign are requests for what belongs to other clients. The account has the right to each.
func foreign() []attempt {
	remove, options := metav1.DeleteOptions{}, metav1.CreateOptions{}
	return []attempt{
		{"create in kube-system", func(ctx context.Context, c *kubernetes.Clientset) error {
			_, err := c.CoreV1().ConfigMaps("kube-system").Create(ctx, configMap("intruder"), options)
			return err
		}},
		{"create with a generated name", func(ctx context.Context, c *kubernetes.Clientset) error {
			_, err := c.CoreV1().Secrets("kube-system").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "at-abcdefghij-"}}, options)
			return err
		}},
		{"patch a tenant's object", func(ctx context.Context, c *kubernetes.Clientset) error {
			_, err := c.CoreV1().ConfigMaps("tenant").Patch(ctx, "theirs", "application/merge-patch+json", []byte(`{"data": {"a": "b"}}`), metav1.PatchOptions{})
			return err
		}},
		{"delete a tenant's collection", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.CoreV1().ConfigMaps("tenant").DeleteCollection(ctx, remove, metav1.ListOptions{})
		}},
		{"delete a tenant's namespace", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.CoreV1().Namespaces().Delete(ctx, "tenant", remove)
		}},
		{"a namespace with a name like ours", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.CoreV1().Namespaces().Delete(ctx, "at-home", remove)
		}},
		{"a token of another account", func(ctx context.Context, c *kubernetes.Clientset) error {
			_, err := c.CoreV1().ServiceAccounts("tenant").CreateToken(ctx, "theirs", &authenticationv1.TokenRequest{}, options)
			return err
		}},
		{"commands in a tenant's pod", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.CoreV1().RESTClient().Post().Namespace("tenant").Resource("pods").Name("theirs").SubResource("exec").Param("command", "sh").Do(ctx).Error()
		}},
		{"the kubelet of a node", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.CoreV1().RESTClient().Get().Resource("nodes").Name("node-1").SubResource("proxy").Suffix("pods").Do(ctx).Error()
		}},
		{"delete a role of Kubernetes", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.RbacV1().ClusterRoles().Delete(ctx, "system:discovery", remove)
		}},
		{"delete all roles", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.RbacV1().ClusterRoles().DeleteCollection(ctx, remove, metav1.ListOptions{})
		}},
		{"a tenant's webhook configuration", func(ctx context.Context, c *kubernetes.Clientset) error {
			return c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "theirs", remove)
		}},
		{"a webhook for all namespaces", func(ctx context.Context, c *kubernetes.Clientset) error {
			_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, webhookFor(nil), options)
			return err
		}},
		{"a webhook for a tenant's namespace", func(ctx context.Context, c *kubernetes.Clientset) error {
			selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "admissiontest.dev/scenario", Operator: metav1.LabelSelectorOpIn, Values: []string{"at-abcdefghij-00001", "tenant"}}}}
			_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, webhookFor(selector), options)
			return err
		}},
		{"a role whose name contains at-", func(ctx context.Context, c *kubernetes.Clientset) error {
			_, err := c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "heartbeat-0123456789"}}, options)
			return err
		}},
	}
}

// webhookFor returns a configuration with the name of a run, and one webhook.
func webhookFor(namespaces *metav1.LabelSelector) *admissionv1.ValidatingWebhookConfiguration {
	none, url := admissionv1.SideEffectClassNone, "https://127.0.0.1:1/"
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "at-abcdefghij-00001-a"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "a.example.com", NamespaceSelector: namespaces, AdmissionReviewVersions: []string{"v1"},
			SideEffects: &none, ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
		}},
	}
}

// wantRefused sends requests for what belongs to others, as the account and as a member of
// system:masters whom it impersonates. All are refused, and nothing is changed.
func wantRefused(t *testing.T, admin *kubernetes.Clientset, config *rest.Config) {
	tenantObjects(t, admin)
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "admissiontest:root", Groups: []string{"system:masters"}}
	for who, as := range map[string]*rest.Config{"the account": config, "an impersonated administrator": impersonating} {
		client, err := kubernetes.NewForConfig(as)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range foreign() {
			if err := one.send(t.Context(), client); err == nil || !strings.Contains(err.Error(), "'"+confinePolicy) {
				t.Errorf("%s: %s: %v; want a refusal by %s", who, one.name, err, confinePolicy)
			}
		}
		own := func(name string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		for _, name := range []string{"at-abcdefghij-00001", "admissiontest-hooks-abcdefghij"} {
			if _, err := client.CoreV1().Namespaces().Create(t.Context(), own(name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s: create namespace %s: %v", who, name, err)
			}
		}
	}
	theirs, err := admin.CoreV1().ConfigMaps("tenant").Get(t.Context(), "theirs", metav1.GetOptions{})
	if err != nil || len(theirs.Data) > 0 {
		t.Errorf("the tenant's ConfigMap is %v, %v", theirs, err)
	}
	if _, err := admin.RbacV1().ClusterRoles().Get(t.Context(), "system:discovery", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	// Kubernetes applies no policy to policies: docs/confine.yaml says so.
	own, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := own.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), confinePolicy, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("delete a policy: %v; docs/confine.yaml says that no policy applies to it", err)
	}
	// Other clients are not confined.
	if _, err := admin.CoreV1().ConfigMaps("kube-system").Create(t.Context(), configMap("administrator"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("an administrator is confined: %v", err)
	}
}

// tenantObjects creates what belongs to another client.
func tenantObjects(t *testing.T, admin *kubernetes.Clientset) {
	t.Helper()
	ctx, options := t.Context(), metav1.CreateOptions{}
	meta := metav1.ObjectMeta{Name: "theirs"}
	for _, name := range []string{"tenant", "at-home"} {
		if _, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, options); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.CoreV1().ConfigMaps("tenant").Create(ctx, configMap("theirs"), options); err != nil {
		t.Fatal(err)
	}
	theirs := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	if _, err := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, theirs, options); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().ServiceAccounts("tenant").Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, options); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().ServiceAccounts("tenant").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, options); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := admin.CoreV1().Pods("tenant").Create(ctx, pod, options); err != nil {
		t.Fatal(err)
	}
}

// transportRole is what only transport service needs.
const transportRole = "admissiontest-transport-service"

// account is a ServiceAccount with the roles of a manifest.
type account struct {
	name   string
	config *rest.Config
	client *kubernetes.Clientset // of an administrator
	// objects are the documents of the manifest, by kind.
	objects map[string][]string
}

// operator applies docs/rbac.yaml, but not the roles left out, and returns a
// configuration with a token of its account.
func operator(t *testing.T, admin *rest.Config, leaveOut ...string) (*rest.Config, *kubernetes.Clientset) {
	t.Helper()
	made := apply(t, admin, "admissiontest", docs.RBAC, leaveOut...)
	wantNoneMissing(t, providers.RESTConfig{Config: made.config, Transport: providers.Transport{Mode: framework.TransportURL}}, catalogue(t))
	return made.config, made.client
}

// apply applies the manifest of an account in the namespace admissiontest, but not the
// roles left out.
func apply(t *testing.T, admin *rest.Config, name, manifest string, leaveOut ...string) account {
	t.Helper()
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	made := account{name: name, client: client, objects: documents(t, manifest)}
	ctx, options := t.Context(), metav1.ApplyOptions{FieldManager: "test"}
	_, err = client.CoreV1().Namespaces().Apply(ctx, corev1apply.Namespace("admissiontest"), options)
	made.must(t, err)
	_, err = client.CoreV1().ServiceAccounts("admissiontest").Apply(ctx, corev1apply.ServiceAccount(name, "admissiontest"), options)
	made.must(t, err)
	made.roles(t)
	made.bindings(t, leaveOut)
	token, err := client.CoreV1().ServiceAccounts("admissiontest").CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	made.must(t, err)
	made.config = rest.AnonymousClientConfig(admin)
	made.config.BearerToken = token.Status.Token
	return made
}

// applyAs is apply for another account, which has its own roles: docs/rbac.yaml with other names, without some roles.
func applyAs(t *testing.T, admin *rest.Config, name string, leaveOut ...string) account {
	t.Helper()
	manifest := regexp.MustCompile(`name: admissiontest(-|, namespace: admissiontest)`).ReplaceAllString(docs.RBAC, "name: "+name+"$1")
	for i, role := range leaveOut {
		leaveOut[i] = name + "-" + role
	}
	return apply(t, admin, name, manifest, leaveOut...)
}

// documents returns the YAML documents of a manifest, by kind.
func documents(t *testing.T, manifest string) map[string][]string {
	t.Helper()
	byKind := map[string][]string{}
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatal(err)
		}
		byKind[head.Kind] = append(byKind[head.Kind], text)
	}
	return byKind
}

func (a account) must(t *testing.T, err error) {
	t.Helper()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func (a account) roles(t *testing.T) {
	t.Helper()
	ctx, client := t.Context(), a.client.RbacV1()
	for _, role := range decoded[rbacv1.ClusterRole](t, a.objects["ClusterRole"]) {
		_, err := client.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = client.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		}
		a.must(t, err)
	}
	for _, role := range decoded[rbacv1.Role](t, a.objects["Role"]) {
		_, err := client.Roles(role.Namespace).Create(ctx, role, metav1.CreateOptions{})
		a.must(t, err)
	}
}

func (a account) bindings(t *testing.T, leaveOut []string) {
	t.Helper()
	ctx, client := t.Context(), a.client.RbacV1()
	for _, binding := range decoded[rbacv1.ClusterRoleBinding](t, a.objects["ClusterRoleBinding"]) {
		if slices.Contains(leaveOut, binding.RoleRef.Name) {
			if err := client.ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				a.must(t, err)
			}
			continue
		}
		_, err := client.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		a.must(t, err)
	}
	for _, binding := range decoded[rbacv1.RoleBinding](t, a.objects["RoleBinding"]) {
		_, err := client.RoleBindings(binding.Namespace).Create(ctx, binding, metav1.CreateOptions{})
		a.must(t, err)
	}
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

// patience is how long an API server may take until it acts on a change of a role.
const patience = time.Minute

// Without a rule of the role of the engine, a run ends before it has created anything, and names the right.
func eachRight(t *testing.T, admin *rest.Config) {
	config, client := operator(t, admin, transportRole)
	from, all := providers.RESTConfig{Config: config, Transport: providers.Transport{Mode: framework.TransportURL}}, catalogue(t)
	for _, role := range decoded[rbacv1.ClusterRole](t, documents(t, docs.RBAC)["ClusterRole"]) {
		if role.Name != "admissiontest-engine" {
			continue
		}
		for i, rule := range role.Rules {
			less := role.DeepCopy()
			less.Rules = slices.Delete(less.Rules, i, i+1)
			update(t, client, less)
			wantMissing(t, from, all, rule)
		}
		update(t, client, role)
		wantNoneMissing(t, from, all)
	}
	wantNothingLeft(t, admin)
}

// coreRights runs areas whose scenarios need nothing but the role of the engine, with that role alone.
func coreRights(t *testing.T, admin *rest.Config) {
	var few []scenario.Scenario
	for _, s := range catalogue(t) {
		if onlyConfigMaps(s) {
			few = append(few, s)
		}
	}
	if len(few) < 50 {
		t.Fatalf("%d scenarios need no other role", len(few))
	}
	made := applyAs(t, admin, "engine-only", "transport-service", "scenarios", "as-administrator")
	made.mayLookForController(t)
	from := providers.RESTConfig{Config: made.config, Transport: providers.Transport{Mode: framework.TransportURL}}
	wantNoneMissing(t, from, few)
	r, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: from})
	wantAllPass(t, r, err)
	t.Logf("%d of %d scenarios pass", r.Summary.Pass, r.Summary.Total)
	wantNothingLeft(t, admin)
}

// onlyConfigMaps reports whether a scenario needs only the role of the engine.
func onlyConfigMaps(s scenario.Scenario) bool {
	kinds := []string{"ConfigMap", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	reads := slices.ContainsFunc(s.Spec.When, func(step scenario.Step) bool { return step.Metrics != nil })
	return !reads && len(s.Spec.Needs) == 0 && s.Spec.Server == nil && s.Spec.FeatureGate == "" && !slices.ContainsFunc(execution.Of(s), func(request framework.Request) bool {
		return request.User != nil || request.Subresource != "" || !slices.Contains(kinds, request.Kind.Kind)
	})
}

// mayLookForController lets an account see whether the API server has a namespace
// controller. Without this right a run takes it that there is one, and waits for it; an
// API server without kube-controller-manager has none.
func (a account) mayLookForController(t *testing.T) {
	t.Helper()
	name := a.name + "-controller"
	_, err := a.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"namespace-controller", "default"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	a.must(t, err)
	_, err = a.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.name, Namespace: "admissiontest"}},
	}, metav1.CreateOptions{})
	a.must(t, err)
}

// With transport service, its role and that of the engine are enough for scenarios about
// ConfigMaps.
func serviceRights(t *testing.T, admin *rest.Config, name string) {
	made := applyAs(t, admin, "service-only", "scenarios", "as-administrator")
	few, err := engine.Select(catalogue(t), []string{"warning.*", "response.*"}, engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	few = slices.DeleteFunc(few, func(s scenario.Scenario) bool { return !onlyConfigMaps(s) })
	c, err := kind.Use(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	image, err := providers.LoadImage(t.Context(), c, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	from := providers.RESTConfig{Config: made.config, Transport: providers.Transport{Mode: framework.TransportService, HookImage: image}}
	wantNoneMissing(t, from, few)
	r, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: from})
	wantAllPass(t, r, err)
	t.Logf("%d scenarios with transport service", len(r.Outcomes))
	wantNothingLeft(t, admin)
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
func wantMissing(t *testing.T, from providers.RESTConfig, all []scenario.Scenario, rule rbacv1.PolicyRule) {
	t.Helper()
	err := pollCheck(t, from, all, func(err error) bool { return errors.Is(err, apiserver.ErrRightsMissing) })
	if !errors.Is(err, apiserver.ErrRightsMissing) {
		t.Errorf("without the rule %v: %v; want %v", rule, err, apiserver.ErrRightsMissing)
		return
	}
	want := cmp.Or(rule.Verbs[0], `""`) + " " + append(rule.Resources, rule.NonResourceURLs...)[0]
	if !regexp.MustCompile(regexp.QuoteMeta(want) + "($|[ .,;])").MatchString(err.Error()) {
		t.Errorf("without the rule %v: %v; want %q in it", rule, err, want)
	}
}

// wantNoneMissing fails unless a run could start, with all rules of an account. The API server takes a moment to act on them.
func wantNoneMissing(t *testing.T, from providers.RESTConfig, all []scenario.Scenario) {
	t.Helper()
	if err := pollCheck(t, from, all, func(err error) bool { return errors.Is(err, errStarted) }); !errors.Is(err, errStarted) {
		t.Fatalf("with all rules: %v", err)
	}
}

// pollCheck starts runs that only check rights until the error is as wanted, and returns
// the last error.
func pollCheck(t *testing.T, from providers.RESTConfig, all []scenario.Scenario, done func(error) bool) error {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if _, err = engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: checked{from}}); done(err) {
			break
		}
	}
	return err
}

// errStarted marks a run that would have started.
var errStarted = errors.New("started")

// checked is a provider that only checks whether scenarios can run.
type checked struct{ providers.RESTConfig }

func (checked) Start(context.Context, target.StartOptions) (target.Target, error) {
	return nil, errStarted
}
