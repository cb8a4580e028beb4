package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
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
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/target"
)

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

// counter counts the requests whose path has a part.
type counter struct {
	http.RoundTripper
	part string
	sent atomic.Int64
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, c.part) {
		c.sent.Add(1)
	}
	return c.RoundTripper.RoundTrip(request)
}

// docs/rbac.yaml is enough for every scenario. Without a rule of it, a run ends before it has created anything, and names the
// right. (TestManifest of internal/providers has each rule.)
func eachRight(t *testing.T, admin *rest.Config) {
	config, client := operator(t, admin, transportRole)
	from, all := providers.RESTConfig{Config: config, Transport: providers.Transport{Mode: framework.TransportURL}}, catalogue(t)
	began := time.Now()
	if err := from.Check(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	t.Logf("checked all rights in %s", time.Since(began).Round(time.Millisecond))
	reviews := &counter{part: "/selfsubject"}
	counted := rest.CopyConfig(admin)
	counted.Wrap(func(inner http.RoundTripper) http.RoundTripper { reviews.RoundTripper = inner; return reviews })
	if err := (providers.RESTConfig{Config: counted}).Check(t.Context(), all); err != nil || reviews.sent.Load() > 2 {
		t.Errorf("Check for an administrator = %v after %d reviews, want two at most", err, reviews.sent.Load())
	}
	for _, role := range decoded[rbacv1.ClusterRole](t, documents(t, docs.RBAC)["ClusterRole"]) {
		if role.Name == transportRole {
			continue
		}
		less := role.DeepCopy()
		less.Rules = less.Rules[1:]
		update(t, client, less)
		wantMissing(t, from, all, role.Rules[0])
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
	return len(s.Spec.Needs) == 0 && s.Spec.Server == nil && !execution.NeedsMetrics(s) && !slices.ContainsFunc(execution.Of(s), func(request framework.Request) bool {
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
// ConfigMaps; without any rule of it nothing is created.
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
	from := providers.RESTConfig{Config: made.config, Transport: providers.Transport{Mode: framework.TransportService, HookImage: image, HookSources: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}}
	wantNoneMissing(t, from, few)
	r, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: from})
	wantAllPass(t, r, err)
	t.Logf("%d scenarios with transport service", len(r.Outcomes))
	for _, role := range decoded[rbacv1.ClusterRole](t, made.objects["ClusterRole"]) {
		if role.Name != made.name+"-transport-service" {
			continue
		}
		for i, rule := range role.Rules {
			less := role.DeepCopy()
			less.Rules = append(less.Rules[:i:i], less.Rules[i+1:]...)
			update(t, made.client, less)
			want := rule.Verbs[0] + " " + rule.Resources[0]
			if err := made.awaitDenied(t, rule); err != nil {
				t.Error(err)
			}
			if _, err := engine.Run(t.Context(), engine.Options{Scenarios: few, Provider: from}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("without the rule %v: %v; want %q in it", rule, err, want)
			}
			update(t, made.client, role)
		}
	}
	wantNothingLeft(t, admin)
}

// awaitDenied waits until the API server acts on the removal of a rule.
func (a account) awaitDenied(t *testing.T, rule rbacv1.PolicyRule) error {
	t.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		review, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:admissiontest:" + a.name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: "any",
			},
		}}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			return err
		}
	}
	return fmt.Errorf("the rule %v is not gone after %s", rule, patience)
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
