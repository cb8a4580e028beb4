package engine_test

import (
	"encoding/base64"
	"fmt"
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
	served, bundle := certificate(t, time.Now().Add(time.Hour))
	_, other := certificate(t, time.Now().Add(time.Hour))
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
	checkVerdicts(t, files, nil, want)
}

// The calls of a webhook with a URL that is installed for all scenarios are seen too.
func TestInstalledByURL(t *testing.T) {
	served, bundle := certificate(t, time.Now().Add(time.Hour))
	address := serveGuard(t, honest, served, bundle)["guard-system/guard"].URL
	file := filepath.Join(t.TempDir(), "webhook.yaml")
	manifest := guardConfiguration("guard", fmt.Sprintf("{url: %q, caBundle: %s}", address+"/mutate", base64.StdEncoding.EncodeToString(bundle)))
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := shipped.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	checkVerdicts(t, fstest.MapFS{
		"a.yaml": byURL("a", "  when:\n"+create("good", "{calls: [{webhook: guard.example.com, path: /mutate}]}")),
		"b.yaml": byURL("b", "  when:\n"+create("good", "{calls: {exclude: [guard.example.com]}}")),
		"c.yaml": byURL("c", "  when:\n"+create("bad", "{refusedBy: {webhook: guard.example.com}}")),
	}, project, map[string]framework.Verdict{"mine.b": framework.Fail})
}

// checkVerdicts runs scenarios, each of which passes unless want has another verdict.
func checkVerdicts(t *testing.T, files fstest.MapFS, project *shipped.Project, want map[string]framework.Verdict) {
	t.Helper()
	scenarios, err := scenario.Load(scenario.LoadOptions{FS: files, Installed: project.Webhooks()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{Scenarios: scenarios, Provider: providers.NewEnvtest(providers.EnvtestOptions{}), Install: project})
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
