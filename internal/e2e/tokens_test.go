package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// A Hook with Tokens accepts the token that a kube-apiserver issues for its URL and API group, and no other one.
func TestTokensOfAnAPIServer(t *testing.T) {
	const gate = "APIServerWebhookAuthenticationToken"
	server, err := envtest.Start(t.Context(), envtest.Options{Profile: envtest.Profile{FeatureGates: map[string]bool{gate: true}}})
	if err != nil && strings.Contains(err.Error(), gate) {
		t.Skipf("the API server has no feature gate %s, which is new in Kubernetes 1.37", gate)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	client := discovery.NewDiscoveryClientForConfigOrDie(server.Config).RESTClient()
	get := func(path string) []byte {
		data, err := client.Get().AbsPath(path).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	post := func(path, body string) []byte {
		data, err := client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).DoRaw(t.Context())
		if err != nil {
			t.Fatalf("%s: %v: %s", path, err, data)
		}
		return data
	}
	var issuer struct{ Issuer string }
	if err := json.Unmarshal(get("/.well-known/openid-configuration"), &issuer); err != nil {
		t.Fatal(err)
	}
	hooks, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hooks.Close() })
	endpoint, err := hooks.Register(hook.Hook{
		Owner: "o", Configuration: "guard", Webhook: "guard.example.com", Phase: framework.Validating,
		Tokens: &hook.Tokens{Issuer: issuer.Issuer, Keys: get("/openid/v1/jwks")},
	})
	if err != nil {
		t.Fatal(err)
	}
	post("/api/v1/namespaces/default/serviceaccounts", `{"metadata": {"name": "caller"}}`)
	post("/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata": {"name": "attest"}, "rules": [{"apiGroups": ["authentication.k8s.io"], "resources": ["admissionReviewAPIGroups"], "resourceNames": ["apps"], "verbs": ["attest"]}]}`)
	post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata": {"name": "attest"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "attest"}, "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "caller"}]}`)
	post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", fmt.Sprintf(`{"metadata": {"name": "guard"}, "webhooks": [{"name": "guard.example.com", "clientConfig": {"url": %q}, "sideEffects": "None",
		"admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}]}]}`, endpoint.URL))
	token := func(spec string) string {
		var got struct{ Status struct{ Token string } }
		var refused error // until the right is effective
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			var data []byte
			data, refused = client.Post().AbsPath("/api/v1/namespaces/default/serviceaccounts/caller/token").SetHeader("Content-Type", "application/json").Body([]byte(`{"spec": ` + spec + `}`)).DoRaw(ctx)
			if refused == nil {
				return true, json.Unmarshal(data, &got)
			}
			return false, nil
		})
		if err != nil {
			t.Fatalf("%v: %v", err, refused)
		}
		return got.Status.Token
	}
	bound := token(fmt.Sprintf(`{"audiences": [%q], "boundObjectRef": {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "name": "guard"}, "attestations": {"admissionReviewAPIGroups": ["apps"]}}`, endpoint.URL))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(endpoint.CABundle)
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	for name, test := range map[string]struct {
		token, group string
		code         int
	}{
		"bound": {bound, "apps", 200}, "bound, for another group": {bound, "batch", 403}, "not bound": {token(fmt.Sprintf(`{"audiences": [%q]}`, endpoint.URL)), "apps", 403},
		"of the API server": {token(`{}`), "apps", 401}, "changed": {bound[:len(bound)-8] + "AAAAAAAA", "apps", 401},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint.URL, bytes.NewReader(fmt.Appendf(nil,
			`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "resource": {"group": %q, "version": "v1", "resource": "things"}}}`, test.group)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+test.token)
		got, err := caller.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = got.Body.Close(); got.StatusCode != test.code {
			t.Errorf("%s: got %d, want %d", name, got.StatusCode, test.code)
		}
	}
}
