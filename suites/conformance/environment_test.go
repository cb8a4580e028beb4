package conformance_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// A started Environment of controller-runtime, with its CustomResourceDefinitions and webhooks, is an API server like
// any other. It runs on, and scenarios leave nothing on it.
func TestStartedEnvironment(t *testing.T) {
	environment := environment(t)
	environment.WebhookInstallOptions.ValidatingWebhooks = []*admissionregistrationv1.ValidatingWebhookConfiguration{guard()}
	config, err := environment.Start()
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	serveGuard(t, environment.WebhookInstallOptions)
	want := map[string]framework.Verdict{
		"own.widget": framework.Pass, "own.denied": framework.Pass, "own.hook": framework.Pass,
		"own.wrong": framework.Fail, "own.flags": framework.Unsupported, "own.audit": framework.Unsupported, "own.open": framework.Unsupported,
	}
	for range 2 { // the second run finds nothing of the first one
		if diff := cmp.Diff(want, verdicts(t, environment)); diff != "" {
			t.Errorf("verdicts: -want +got\n%s", diff)
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	left, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != "guard" {
		t.Errorf("after the runs, the API server has the configurations %v, %v; want only that of the user", left, err)
	}
}

// A run on an Environment that is not started says so.
func TestEnvironmentIsNotStarted(t *testing.T) {
	plan, err := options(&crenvtest.Environment{}).Plan(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = plan.Run(t.Context(), plan.Scenarios, nil, nil); err == nil || !strings.Contains(err.Error(), "is not started: call its Start") {
		t.Errorf("got %v, want that it is not started", err)
	}
}

// options returns those for a run of the scenarios of this file.
func options(environment *crenvtest.Environment) conformance.Options {
	const form = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: own.%[1]s}
spec:
  level: MUST
  requirement: The requirement of %[1]s.
  source: ["https://example.com/source"]
  %[2]s
  when:
    - create: %[3]s
      then: %[4]s
`
	const denied, other = `{apiVersion: v1, kind: ConfigMap, metadata: {name: denied}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`
	const hooked = `given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: scripted}
      webhooks:
        - name: scripted.example.com
          rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  hooks:
    scripted.example.com: {allowed: false}`
	all := fstest.MapFS{}
	for name, one := range map[string]struct{ more, object, then string }{
		"widget": {"", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}`, `{code: 201}`},
		"denied": {"", denied, `{code: 403, message: by the guard}`},
		"hook":   {hooked, other, `{code: 400, calls: [scripted.example.com]}`},
		"wrong":  {"", denied, `{code: 201}`},
		"flags":  {"server: {flags: {enable-admission-plugins: AlwaysPullImages}}", other, `{code: 201}`},
		"audit":  {"needs: [audit]", other, `{code: 201}`},
		"open":   {"isolation: none", other, `{code: 201}`},
	} {
		all["own/"+name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, form, name, one.more, one.object, one.then)}
	}
	return conformance.Options{Target: conformance.Target{Environment: environment}, Selection: conformance.Selection{FS: all}}
}

// verdicts runs the scenarios of this file and returns their verdicts.
func verdicts(t *testing.T, environment *crenvtest.Environment) map[string]framework.Verdict {
	t.Helper()
	plan, err := options(environment).Plan(nil, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Run(t.Context(), plan.Scenarios, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Target.Kind != framework.TargetEnvtest {
		t.Errorf("the report says that the target is %q", report.Target.Kind)
	}
	got := map[string]framework.Verdict{}
	for _, outcome := range report.Outcomes {
		got[outcome.Name] = outcome.Verdict
		t.Log(outcome.Name, outcome.Verdict, outcome.Reason)
	}
	return got
}

// environment returns an Environment with a CustomResourceDefinition that is not started.
func environment(t *testing.T) *crenvtest.Environment {
	t.Helper()
	found, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	preserve := true
	return &crenvtest.Environment{
		BinaryAssetsDirectory: found.Dir,
		CRDInstallOptions: crenvtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
				}},
			},
		}}},
	}
}

// guard is a webhook configuration of the user, whose webhook serveGuard serves.
func guard() *admissionregistrationv1.ValidatingWebhookConfiguration {
	path, fail, none := "/guard", admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "guard", Name: "guard", Path: &path}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
}

// serveGuard serves the webhook of guard where an Environment wants it. It denies objects of the name denied.
func serveGuard(t *testing.T, at crenvtest.WebhookInstallOptions) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "denied"}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Message: "denied by the guard"}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	pair, err := tls.LoadX509KeyPair(filepath.Join(at.LocalServingCertDir, "tls.crt"), filepath.Join(at.LocalServingCertDir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	if server.Listener, err = net.Listen("tcp", net.JoinHostPort(at.LocalServingHost, strconv.Itoa(at.LocalServingPort))); err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
}
