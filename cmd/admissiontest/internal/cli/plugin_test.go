package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// plugins is a module with plugins that have seeded faults.
const plugins = "testdata/plugins/"

// A plugin that cannot be built into kube-apiserver is an error of the command line, with the
// reason. Two of these are only found by a kube-apiserver that was built.
func TestPluginsThatCannotBeBuilt(t *testing.T) {
	for name, test := range map[string]struct {
		plugin string
		says   []string
	}{
		"two places":     {plugins + "late,last,before=LimitRanger", []string{"one of before, after and last"}},
		"unknown word":   {plugins + "late,first", []string{`unknown word "first"`}},
		"no folder":      {plugins + "nowhere", []string{"nowhere"}},
		"no module":      {"/", []string{"/"}},
		"no package":     {"example.com/nowhere", []string{"example.com/nowhere"}},
		"no Register":    {plugins + "noregister", []string{"no function Register(*admission.Plugins)"}},
		"does not build": {plugins + "compile", []string{"compile.go:8:10", "plugins.Regsiter undefined"}},
		"version conflict": {"testdata/conflict", []string{
			"example.com/conflict requires k8s.io/apiserver v0.36.6", "Kubernetes v1.36.3 has v0.36.3", "or build Kubernetes 1.36.6",
		}},
		"existing name":  {plugins + "existing", []string{"LimitRanger", "has a plugin of that name"}},
		"unknown place":  {plugins + "late,before=Nowhere", []string{"no plugin Nowhere", "MutatingAdmissionWebhook"}},
		"panics in init": {plugins + "panicinit", []string{"the initialization of a package panicked at example.com/plugins/panicinit.init.0 (panicinit.go:8): assignment to entry in nil map"}},
		"panics in Register": {plugins + "panicregister", []string{
			"plugin package example.com/plugins/panicregister: function Register panicked at example.com/plugins/panicregister.Register (panicregister.go:7): no plugins",
		}},
		"given twice": {plugins + "late", []string{"twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(test.plugin, "example.com") && !filepath.IsAbs(test.plugin) {
				test.plugin = "./" + test.plugin
			}
			args := []string{"assets", "build", "--plugin", test.plugin}
			if name == "given twice" {
				args = append(args, "--plugin", test.plugin)
			}
			if name == "version conflict" {
				args = append(args, "--k8s-version", "1.36.3") // of which there are newer libraries
			}
			onCatalogue(t.Context(), args...).check(t, exit.Usage, test.says...)
		})
	}
	onCatalogue(t.Context(), "run", "--plugin", "./"+plugins+"late", "--assets-dir", ".").check(t, exit.Usage, "cannot be combined")
	onCatalogue(t.Context(), "run", "--plugin", "./"+plugins+"late", "--kubeconfig", "x").check(t, exit.Usage, "cannot be combined")
	onCatalogue(t.Context(), "run", "--observe-plugins", "--target", "kind").check(t, exit.Usage, "cannot be combined")
}

// brokenPlugin is a scenario that a broken plugin fails: of its name, with a label of its name.
func brokenPlugin(name, webhook, then string) string {
	return `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: broken.` + strings.ToLower(name) + `}
spec:
  level: MUST
  requirement: The plugin is not broken.
  source: ["https://example.com"]
` + webhook + `
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {` + name + `: x}}}
      then: ` + then + "\n"
}

// Scenarios on a real server fail for a broken plugin, and the timeline shows its call.
func TestBrokenPlugins(t *testing.T) {
	const webhook = `  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingWebhookConfiguration
      metadata: {name: a}
      webhooks: [{name: a.example.com, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}]
  hooks: {a.example.com: {patch: [{op: add, path: /data, value: {a: b}}]}}`
	dir := write(t, map[string]string{
		"broken/grows.yaml":  brokenPlugin("Grows", webhook, "{plugins: [{plugin: Grows, round: 0, changed: [metadata.labels.Grows]}, MutatingAdmissionWebhook, {plugin: Grows, round: 1, changed: []}]}"),
		"broken/panics.yaml": brokenPlugin("Panics", "", "{code: 201}"),
		"broken/late.yaml":   brokenPlugin("Late", "", "{plugins: [Late, MutatingAdmissionWebhook]}"),
		"fine/place.yaml":    strings.Replace(brokenPlugin("Fine", "", "{plugins: {inOrder: [Grows, MutatingAdmissionPolicy, Late, ResourceQuota], exclude: [AlwaysDeny]}}"), "broken.", "fine.", 1),
		"fine/own.yaml":      strings.Replace(brokenPlugin("Own", "", "{object: {metadata: {annotations: {text: own}}}, plugins: {inOrder: [{plugin: Own, phase: mutating}], exclude: [AlwaysDeny]}}"), "broken.", "fine.", 1),
		"refused/a.yaml": strings.Replace(brokenPlugin("Refused", `  server:
    flags: {admission-control-config-file: $(files)/a.yaml}
    files:
      a.yaml: |
        apiVersion: apiserver.config.k8s.io/v1
        kind: AdmissionConfiguration
        plugins: [{name: Grows, configuration: {a: b}}]
`, "{code: 201}"), "broken.", "refused.", 1),
	})
	flags := []string{"--plugin", "./" + plugins + "broken", "--plugin", "./" + plugins + "late,last", "--plugin", "./" + plugins + "own,before=LimitRanger"}
	run := func(args ...string) result {
		return onCatalogue(t.Context(), append(append([]string{"run", "-v"}, flags...), args...)...)
	}
	got := run(filepath.Join(dir, "broken"), filepath.Join(dir, "fine"))
	if got.code != exit.Fail {
		t.Errorf("exit code %d, want %d; standard error:\n%s", got.code, exit.Fail, got.stderr)
	}
	for _, part := range []string{
		"API server v" + binaries.DefaultVersion + " with Grows, Panics, Late, Own, webhooks",
		"round 1  plugin Grows  CREATE configmaps", "changed metadata.labels.Grows after", "plugins[2].changed: []",
		"plugin Panics  CREATE configmaps", "panicked: oh no, at example.com/plugins/broken.Register.", "(broken.go:18); the API server did not answer the request",
		"a call of plugin MutatingAdmissionWebhook after the mutating call of plugin Late",
		"pass          MUST    fine.fine", "pass          MUST    fine.own", "2 pass, 3 fail",
	} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("the report lacks %q", part)
		}
	}
	if t.Failed() {
		t.Logf("standard output:\n%s", got.stdout)
	}
	onCatalogue(t.Context(), "run", "--plugin", "./"+plugins+"broken", filepath.Join(dir, "broken", "panics.yaml")).check(t, exit.Fail, "plugin Panics panicked: oh no, at example.com/plugins/broken.Register.")
	run(filepath.Join(dir, "refused")).check(t, exit.Infrastructure, "Grows wants no configuration", "kube-apiserver ended before it was ready")
}

// A plugin that keeps kube-apiserver from its start is named, with the position of its panic or with what it
// refused.
func TestPluginsThatPreventTheStart(t *testing.T) {
	for name, says := range map[string]string{
		"PanicsInFactory":        "plugin panicked at example.com/plugins/start.Register.func1 (start.go:15): no factory",
		"PanicsAtGates":          `plugin panicked at example.com/plugins/start.(*panicsAtGates).InspectFeatureGates (start.go:58): feature "Unknown" is not registered`,
		"PanicsInAdmit":          "plugin PanicsInAdmit panicked at example.com/plugins/start.panicsInAdmit.Admit (start.go:50): assignment to entry in nil map; it was called for create priorityclasses",
		"RefusesPriorityClasses": `plugin RefusesPriorityClasses refused the API server's own request to create priorityclasses.scheduling.k8s.io system-node-critical: priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: it has no owner`,
		"RefusesRoles":           "plugin RefusesRoles refused the API server's own request to create clusterroles.rbac.authorization.k8s.io",
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"broken/a.yaml": brokenPlugin(name, "  server: {flags: {enable-admission-plugins: "+name+"}}", "{code: 201}")})
			got := onCatalogue(t.Context(), "run", "--plugin", "./"+plugins+"start,off", filepath.Join(dir, "broken"))
			got.check(t, exit.Infrastructure, "kube-apiserver ended before it was ready (exit status ", "; it printed: "+says)
		})
	}
}
