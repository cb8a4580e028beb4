package cli

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// installGuard installs the guard at a URL as NAME.example.com, and waits until the API server calls it.
func installGuard(t *testing.T, client kubernetes.Interface, name string, handler http.Handler) (ca []byte, address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca, address = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), server.URL
	url, none := address+"/guard", admissionregistrationv1.SideEffectClassNone
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: name + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "guard", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"no"}}}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "DELETE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}}}
	of := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := of.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = of.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) }) // the server ends with the test
	return ca, address
}

// untilDenied waits until the API server calls the guard.
func untilDenied(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Data: map[string]string{"mode": "bad"}}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx, bad, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "the mode is not allowed"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// as returns a kubeconfig of a user that may do what the rules allow.
func as(t *testing.T, client kubernetes.Interface, kubeconfig, user string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range loaded.AuthInfos {
		each.Impersonate = user
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*loaded, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// verdictsOf returns the verdicts of a report in JSON, by rule.
func verdictsOf(t *testing.T, stdout string) map[string]framework.Verdict {
	t.Helper()
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	found := map[string]framework.Verdict{}
	for _, outcome := range r.Outcomes {
		found[outcome.Name] = outcome.Verdict
	}
	return found
}

// deaf is the guard, except that it allows everything that an API server asks.
func deaf() http.Handler {
	next := guardWebhook(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "kube-apiserver") {
			body, _ := io.ReadAll(io.LimitReader(r.Body, 7<<20))
			r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), `"mode":"bad"`, `"mode":"good"`)))
		}
		next.ServeHTTP(w, r)
	})
}

// TestContractInstalled: webhooks that are installed on an API server, by URL, get the verdicts that they get at the URL, and a
// verdict for what the API server does. Nothing of the run stays.
func TestContractInstalled(t *testing.T) {
	server, kubeconfig := started(t)
	client, err := kubernetes.NewForConfig(rest.CopyConfig(server.Config))
	if err != nil {
		t.Fatal(err)
	}
	ca, address := installGuard(t, client, "guard", guardWebhook(false))
	untilDenied(t, client)
	dir := write(t, map[string]string{
		"ca.crt": string(ca), "webhook.yaml": strings.ReplaceAll(guardConfiguration, "[CREATE]", "[CREATE, DELETE]"),
		"good.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {mode: good}\n",
		"bad.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {mode: bad}\n",
	})
	samples := []string{"--allow", dir + "/good.yaml", "--allow", "DELETE:" + dir + "/good.yaml", "--reject", dir + "/bad.yaml=mode is not allowed", "-o", "json"}
	installed := func(kubeconfig string, args ...string) []string {
		return slices.Concat([]string{"contract", "--kubeconfig", kubeconfig}, args, samples)
	}
	list := rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"list"}}
	read := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}
	nothing, lists, reads := as(t, client, kubeconfig, "nothing"), as(t, client, kubeconfig, "lists", list), as(t, client, kubeconfig, "reads", list, read)

	atURL := execute(t.Context(), nil, slices.Concat([]string{"contract", "--url", address, "--ca-file", dir + "/ca.crt", "--configuration", dir + "/webhook.yaml"}, samples)...)
	atURL.check(t, exit.Pass)
	want := verdictsOf(t, atURL.stdout)
	want["WH-SERVER-1 (guard.example.com)"] = framework.Pass
	for _, name := range []string{"guard", "guard.example.com"} {
		got := execute(t.Context(), nil, installed(kubeconfig, "--webhook", name)...)
		got.check(t, exit.Pass)
		for rule, verdict := range verdictsOf(t, got.stdout) {
			if verdict != want[rule] {
				t.Errorf("--webhook %s: %s: got %s, at the URL %s", name, rule, verdict, want[rule])
			}
		}
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown":      {installed(kubeconfig, "--webhook", "gard"), exit.Usage, `did you mean "guard"?`},
		"no name":      {installed(kubeconfig), exit.Usage, "--webhook is required"},
		"no samples":   {[]string{"contract", "--kubeconfig", kubeconfig, "--webhook", "guard"}, exit.Usage, "--allow or --reject is required"},
		"both":         {installed(kubeconfig, "--webhook", "guard", "--url", address), exit.Usage, "cannot be combined"},
		"no list":      {installed(nothing, "--webhook", "guard"), exit.Inconclusive, "resources: [mutatingwebhookconfigurations], verbs: [list]"},
		"no namespace": {installed(lists, "--webhook", "guard"), exit.Inconclusive, "resources: [namespaces], verbs: [get]"},
		"no creation":  {installed(reads, "--webhook", "guard"), exit.Inconclusive, "verbs: [get, list, create, update, delete]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, test.args...)
			got.check(t, test.code)
			if !strings.Contains(got.stdout+got.stderr, test.want) {
				t.Errorf("%q is not in:\n%s\n%s", test.want, got.stdout, got.stderr)
			}
			if name == "no creation" {
				onlyServer(t, verdictsOf(t, got.stdout), framework.Inconclusive)
			}
		})
	}
	nothingLeft(t, client)
}

// onlyServer fails if another rule than WH-SERVER-1 has a verdict, or that rule has not.
func onlyServer(t *testing.T, verdicts map[string]framework.Verdict, want framework.Verdict) {
	t.Helper()
	for rule, verdict := range verdicts {
		if (verdict == want) != strings.HasPrefix(rule, "WH-SERVER-1 ") {
			t.Errorf("%s: got %s", rule, verdict)
		}
	}
}

// nothingLeft fails if the API server has a namespace of a run.
func nothingLeft(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range left.Items {
		if strings.HasPrefix(each.Name, "at-") {
			t.Errorf("namespace %s is left", each.Name)
		}
	}
}

// TestContractInstalledUnreachable: another verdict on the API server, and a certificate that it would refuse, are failures. A
// Service that leads nowhere is an error.
func TestContractInstalledUnreachable(t *testing.T) {
	server, kubeconfig := started(t)
	client, err := kubernetes.NewForConfig(rest.CopyConfig(server.Config))
	if err != nil {
		t.Fatal(err)
	}
	installGuard(t, client, "guard", deaf())
	of := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	change := func(to admissionregistrationv1.WebhookClientConfig) {
		configuration, err := of.Get(t.Context(), "guard", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		configuration.Webhooks[0].ClientConfig = to
		if _, err := of.Update(t.Context(), configuration, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	configuration, err := of.Get(t.Context(), "guard", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{
		"good.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {mode: good}\n",
		"bad.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {mode: bad}\n",
	})
	args := []string{"contract", "--kubeconfig", kubeconfig, "--webhook", "guard", "--allow", dir + "/good.yaml", "--reject", dir + "/bad.yaml"}
	says := func(code int, text string) {
		t.Helper()
		got := execute(t.Context(), nil, args...)
		got.check(t, code)
		if !strings.Contains(got.stdout+got.stderr, text) {
			t.Errorf("%q is not in:\n%s\n%s", text, got.stdout, got.stderr)
		}
	}
	got := execute(t.Context(), nil, append(slices.Clip(args), "-o", "json")...)
	got.check(t, exit.Fail)
	onlyServer(t, verdictsOf(t, got.stdout), framework.Fail)
	service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "guard"}, CABundle: configuration.Webhooks[0].ClientConfig.CABundle}
	change(service)
	says(exit.Infrastructure, "get Service default/guard")
	made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "guard"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8443}}}}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says(exit.Infrastructure, "Service default/guard has no port 443")
	service.Service.Port = new(int32)
	*service.Service.Port = 8443
	change(service)
	says(exit.Infrastructure, "leads to no Pod that is ready")
	another, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.Load(another)
	if err != nil {
		t.Fatal(err)
	}
	wrong := configuration.Webhooks[0].ClientConfig
	for _, each := range loaded.Clusters {
		wrong.CABundle = each.CertificateAuthorityData
	}
	change(wrong)
	says(exit.Fail, "x509: certificate signed by unknown authority")
	if err := of.Delete(t.Context(), "guard", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, client)
}
