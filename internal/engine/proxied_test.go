package engine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// honest adds a label.
func honest(w http.ResponseWriter, r *http.Request) {
	answer(w, r, `[{"op":"add","path":"/metadata/labels","value":{"by":"guard"}}]`)
}

func answer(w http.ResponseWriter, r *http.Request, patch string) {
	var review map[string]any
	_ = json.NewDecoder(r.Body).Decode(&review)
	request, _ := review["request"].(map[string]any)
	name, _ := request["name"].(string)
	response := map[string]any{"uid": request["uid"], "allowed": name != "bad", "patch": []byte(patch), "patchType": "JSONPatch"}
	if name == "bad" {
		response = map[string]any{"uid": request["uid"], "allowed": false, "status": map[string]any{"message": "it is bad"}}
	}
	review["response"] = response
	delete(review, "request")
	_ = json.NewEncoder(w).Encode(review)
}

// certificate returns a self-signed serving certificate, and the CA bundle for it.
func certificate(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serveGuard serves the webhook under test until the test ends, and returns its endpoint.
func serveGuard(t *testing.T, handler http.HandlerFunc, served tls.Certificate, bundle []byte) map[string]framework.Endpoint {
	t.Helper()
	guard := httptest.NewUnstartedServer(handler)
	guard.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it disconnect
	guard.TLS = &tls.Config{Certificates: []tls.Certificate{served}}
	guard.StartTLS()
	t.Cleanup(guard.Close)
	return map[string]framework.Endpoint{"guard-system/guard": {URL: guard.URL, CABundle: bundle}}
}

// Each scenario sees the calls for its own requests of a webhook that is installed for all of them.
func TestInstalledWebhook(t *testing.T) {
	const configuration = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: guard}
webhooks:
  - name: guard.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {namespace: guard-system, name: guard, path: /mutate}}
    rules:
      - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}
      - {operations: ["*"], apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], resources: [clusterroles]}
`
	files := fstest.MapFS{}
	for name, steps := range map[string]string{
		"one": create("one", "{object: {metadata: {labels: {by: guard}}}, calls: [{webhook: guard.example.com, request: {name: one}}]}"),
		"two": create("two", "{calls: [{webhook: guard.example.com, path: /mutate, request: {name: two}, response: {allowed: true}}]}"),
		"cluster-scoped": "    - create: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $(id)}}\n      then: {calls: [{webhook: guard.example.com}]}\n" +
			"    - delete: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: $(id)}\n      then: {code: 500, message: [attempted to modify], calls: [{webhook: guard.example.com, request: {oldObject: {metadata: {name: $(id)}}}}]}\n",
		"none":  "    - create: {apiVersion: v1, kind: Secret, metadata: {name: a}}\n      then: {calls: []}\n",
		"wrong": create("wrong", "{calls: []}"),
	} {
		files[name+".yaml"] = byURL(name, "  when:\n"+steps)
	}
	served, bundle := certificate(t)
	checkVerdicts(t, files, engine.Options{Endpoints: serveGuard(t, honest, served, bundle), Install: installed(t, configuration)}, map[string]framework.Verdict{"mine.wrong": framework.Fail})
}

// create is a step that creates a ConfigMap.
func create(name, then string) string {
	return "    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}\n      then: " + then + "\n"
}

// guardConfiguration is a configuration of the webhook under test with a clientConfig, in one line.
func guardConfiguration(name, clientConfig string) string {
	return "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: " + name + "}, webhooks: [{name: " + name + ".example.com, clientConfig: " + clientConfig +
		", sideEffects: None, admissionReviewVersions: [v1], rules: [{operations: [CREATE], apiGroups: [\"\"], apiVersions: [v1], resources: [configmaps]}]}]}"
}

// byURL is a scenario with fields of its spec.
func byURL(name, fields string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("apiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: mine." + name + "}\nspec:\n  level: MUST\n  requirement: A requirement.\n" + fields)}
}

// The calls of a webhook under test with a URL are seen, whichever way it is configured. If a request
// configures it, they are not, and decide nothing. The TLS connection is that of the clientConfig.
func TestWebhookByURL(t *testing.T) {
	served, bundle := certificate(t)
	_, other := certificate(t)
	address := serveGuard(t, honest, served, bundle)["guard-system/guard"].URL
	config := func(path string, bundle []byte) string {
		return fmt.Sprintf("{url: %q, caBundle: %s}", address+path, base64.StdEncoding.EncodeToString(bundle))
	}
	seen := config("/mutate/", bundle)
	given := func(clientConfig string) string {
		return "  given:\n    - " + guardConfiguration("guard", clientConfig) + "\n  when:\n"
	}
	const called = "{object: {metadata: {labels: {by: guard}}}, calls: [{webhook: guard.example.com, path: /mutate, proto: HTTP/1.1, response: {allowed: true}}]}"
	written := func(name, then string) string {
		return "  when:\n    - create: " + guardConfiguration("$(id)-"+name, strings.Replace(seen, "/mutate/", "/mutate", 1)) + "\n" +
			"    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n      dryRun: true\n      eventually: true\n      then: " + then + "\n"
	}
	files := fstest.MapFS{}
	want := map[string]framework.Verdict{"mine.exclude": framework.Fail, "mine.none": framework.Fail, "mine.written-none": framework.Inconclusive, "mine.written-exclude": framework.Inconclusive}
	for name, fields := range map[string]string{
		"given":   given(seen) + create("a", called),
		"exclude": given(seen) + create("a", "{calls: {exclude: [guard.example.com]}}"),
		"none":    given(seen) + create("a", "{calls: []}"),
		"install": "  when:\n    - install: [" + guardConfiguration("guard", seen) + "]\n" + create("a", called),
		"replace": "  given:\n    - " + guardConfiguration("guard", config("/other", bundle)) + "\n  when:\n    - install: [" + guardConfiguration("guard", seen) + "]\n" + create("a", called),
		"alone":   "  isolation: none\n" + given(seen) + create("a", called),
		"fault":   "  hooks: {guard.example.com: {fault: reset}}\n" + given(seen) + create("a", "{code: 500, calls: [{webhook: guard.example.com, code: {$absent: true}}]}"),
		// The TLS connection fails as that of the API server.
		"other-ca": given(config("/mutate", other)) + create("a", `{code: 500, message: ["failed calling webhook", "x509: "]}`),
		"no-ca":    given(config("/mutate", nil)) + create("a", `{code: 500, message: ["failed calling webhook", "x509: "]}`),
		"bad-ca":   given(config("/mutate", []byte("no"))) + create("a", `{code: 500, message: "unable to load root certificates"}`),
		"down":     given(`{url: "https://127.0.0.1:1/"}`) + create("a", `{code: 500, message: connection refused}`),
		// A request configures it.
		"written":         written("w", "{object: {metadata: {labels: {by: guard}}}}"),
		"written-none":    written("x", "{object: {metadata: {labels: {by: guard}}}, calls: []}"),
		"written-exclude": written("y", "{object: {metadata: {labels: {by: guard}}}, calls: {exclude: [$(id)-y.example.com]}}"),
	} {
		files[name+".yaml"] = byURL(name, fields)
	}
	checkVerdicts(t, files, engine.Options{}, want)
}

// installed returns what is installed for all scenarios.
func installed(t *testing.T, manifest string) *shipped.Project {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhook.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := shipped.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// checkVerdicts runs scenarios, each of which passes unless want has another verdict.
func checkVerdicts(t *testing.T, files fstest.MapFS, options engine.Options, want map[string]framework.Verdict) {
	t.Helper()
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: files, Installed: options.Install.Webhooks()})
	if err != nil {
		t.Fatal(err)
	}
	options.Scenarios, options.Provider = scenarios, providers.NewEnvtest(providers.EnvtestOptions{})
	got, err := engine.Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range got.Outcomes {
		expected := framework.Pass
		if verdict, other := want[one.Name]; other {
			expected = verdict
		}
		if one.Verdict != expected {
			t.Errorf("%s: got %s (%s), want %s", one.Name, one.Verdict, one.Reason, expected)
		}
	}
}
