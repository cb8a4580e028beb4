package scenario

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// withServer returns a file with a scenario that has an API server with these flags and files (flow YAML), and
// a step.
func withServer(flags, files, step string) string {
	return fmt.Sprintf(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.server}
spec:
  level: MUST
  requirement: A requirement.
  server:
    flags: {%s}
    files: {%s}
  when:
    - id: one
      create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
%s`, flags, files, step)
}

// kubeconfig returns a kubeconfig with one cluster and one user, as a double-quoted string.
func kubeconfig(cluster, user string) string {
	return fmt.Sprintf("%q", fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: s, cluster: {%s}}], users: [{name: a, user: {%s}}], contexts: [{name: s, context: {cluster: s, user: a}}], current-context: s}", cluster, user))
}

const (
	admissionFlag = `admission-control-config-file: $(files)/admission.yaml`
	authorizeFlag = `authorization-webhook-config-file: $(files)/kc`
	runsCommand   = `exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}`
	loopback      = `server: 'https://127.0.0.1:$(hooks.port)/$(id)/x'`
)

// admission returns an admission configuration with one plugin, as a double-quoted string.
func admission(plugin string) string {
	return fmt.Sprintf("%q", "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{"+plugin+"}]}")
}

// webhookPlugin is the configuration of a webhook plugin with one field.
func webhookPlugin(field string) string {
	return admission("name: ValidatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, " + field + "}")
}

// What kube-apiserver must not get from a scenario, because it runs as the user of the run.
func TestServerOutside(t *testing.T) {
	const (
		command   = "which executes a command"
		outside   = "expected one below $(files)"
		elsewhere = "expected one on this machine"
	)
	for name, test := range map[string]struct{ flags, files, step, want string }{
		"flag that writes":            {flags: "audit-log-path: $(files)/log", want: `8:13: spec.server.flags has "audit-log-path"; expected only flags`},
		"flag that opens a port":      {flags: "bind-address: 0.0.0.0", want: "AllowServerFlags of conformance.Target"},
		"flag with an underscore":     {flags: "feature_gates: X=true", want: `did you mean "feature-gates"?`},
		"flag with two dashes":        {flags: "--v: '1'", want: "expected only flags"},
		"flag with a value in it":     {flags: "'audit-log-path=/tmp/x,': ''", want: "expected only flags"},
		"flag of two lines":           {flags: `enable-admission-plugins: "A\n--audit-log-path=x"`, want: "8:39: spec.server.flags.enable-admission-plugins has a control character"},
		"path of a flag":              {flags: "authentication-config: /etc/passwd", want: `8:36: spec.server.flags.authentication-config is "/etc/passwd"; expected a path below $(files)`},
		"relative path of a flag":     {flags: "authentication-config: x.yaml", want: "expected a path below $(files)"},
		"path of a flag that goes up": {flags: "token-auth-file: $(files)/a/../../x", want: "expected a path below $(files)"},
		"path beside the folder":      {flags: "token-auth-file: $(files)x", want: "expected a path below $(files)"},
		"audit policy":                {flags: "audit-policy-file: /etc/passwd", want: "expected a path below $(files)"},
		"static manifests":            {flags: admissionFlag, files: "admission.yaml: " + webhookPlugin("staticManifestsDir: /etc"), want: outside},
		"static manifests up":         {flags: admissionFlag, files: "admission.yaml: " + webhookPlugin("staticManifestsDir: $(files)/../.."), want: outside},
		"plugin's file":               {flags: admissionFlag, files: "admission.yaml: " + admission("name: PodNodeSelector, path: /etc/passwd"), want: outside},
		"plugin's file up":            {flags: admissionFlag, files: "admission.yaml: " + admission("name: PodNodeSelector, path: ../../x"), want: outside},
		"field of another plugin":     {flags: admissionFlag, files: "admission.yaml: " + admission("name: Owner, configuration: {list: [/etc/passwd]}"), want: outside},
		"webhooks' kubeconfig":        {flags: admissionFlag, files: "admission.yaml: " + webhookPlugin("kubeConfigFile: /home/me/.kube/config"), want: outside},
		"kubeconfig of webhooks":      {flags: admissionFlag, files: "admission.yaml: " + webhookPlugin("kubeConfigFile: $(files)/kc") + ", kc: " + kubeconfig(loopback, runsCommand), want: command},
		"kubeconfig of images": {
			flags: admissionFlag, files: "admission.yaml: " + admission("name: ImagePolicyWebhook, configuration: {imagePolicy: {kubeConfigFile: kc}}") + ", kc: " + kubeconfig(loopback, runsCommand), want: command,
		},
		"kubeconfig of a plugin's file": {
			flags: admissionFlag, files: "admission.yaml: " + admission("name: ImagePolicyWebhook, path: sub/images") + `, sub/images: "imagePolicy: {kubeConfigFile: $(files)/kc}", kc: ` + kubeconfig(loopback, runsCommand), want: command,
		},
		"kubeconfig in authorization": {
			flags: "authorization-config: $(files)/authz", files: `authz: "authorizers: [{webhook: {connectionInfo: {type: KubeConfigFile, kubeConfigFile: $(files)/kc}}}]", kc: ` + kubeconfig(loopback, runsCommand), want: command,
		},
		"kubeconfig of audit":      {flags: "audit-webhook-config-file: $(files)/kc", files: "kc: " + kubeconfig(loopback, runsCommand), want: command},
		"kubeconfig of tokens":     {flags: "authentication-token-webhook-config-file: $(files)/kc", files: "kc: " + kubeconfig(loopback, runsCommand), want: command},
		"kubeconfig that is data":  {flags: authorizeFlag + ", token-auth-file: $(files)/./kc", files: "kc: " + kubeconfig(loopback, runsCommand), want: command},
		"kubeconfig in other case": {flags: authorizeFlag + ", token-auth-file: $(files)/KC", files: "KC: " + kubeconfig(loopback, runsCommand), want: command},
		"kubeconfig among manifests": {
			flags: admissionFlag, files: "admission.yaml: " + webhookPlugin("staticManifestsDir: $(files), kubeConfigFile: $(files)/kc") + ", kc: " + kubeconfig(loopback, runsCommand), want: command,
		},
		"kubeconfig that nothing names": {files: "kc: " + kubeconfig(loopback, runsCommand), want: command},
		"auth provider":                 {flags: authorizeFlag, files: "kc: " + kubeconfig(loopback, "auth-provider: {name: oidc}"), want: command},
		"exec in an anchor":             {flags: authorizeFlag, files: `kc: "a: &a {exec: {command: x}}\nusers: [{name: a, user: *a}]"`, want: "an anchor or alias"},
		"exec as an alias":              {flags: authorizeFlag, files: `kc: "a: &a exec\nusers: [{name: a, user: {*a : {command: x}}}]"`, want: "an anchor or alias"},
		"exec in the first of two keys": {flags: authorizeFlag, files: `kc: '{"users": [{"name": "a", "user": {"exec": {}, "token": "x"}, "user": {"token": "x"}}]}'`, want: command},
		"exec in a second document":     {flags: authorizeFlag, files: `kc: "a: b\n---\nuser: {exec: {}}"`, want: command},
		"exec in base64":                {flags: authorizeFlag, files: `kc: "user: {!!binary ZXhlYw==: {}}"`, want: "the name of a field is not a string"},
		"exec in escapes":               {flags: authorizeFlag, files: `kc: 'user: {"\u0065xec": {}}'`, want: command},
		"no YAML":                       {flags: authorizeFlag, files: `kc: "user: {"`, want: "expected YAML"},
		"certificate":                   {flags: authorizeFlag, files: "kc: " + kubeconfig(loopback+", certificate-authority: /etc/passwd", ""), want: outside},
		"client certificate":            {flags: authorizeFlag, files: "kc: " + kubeconfig(loopback, "client-certificate: ../x, client-key: $(files)/x"), want: outside},
		"token":                         {flags: authorizeFlag, files: "kc: " + kubeconfig(loopback, "tokenFile: /var/run/secrets/token"), want: outside},
		"token in an alias":             {flags: authorizeFlag, files: `kc: "a: &a /etc/passwd\nuser: {tokenFile: *a}"`, want: "an anchor or alias"},
		"address":                       {flags: authorizeFlag, files: "kc: " + kubeconfig("server: 'https://example.com'", ""), want: elsewhere},
		"address without a scheme":      {flags: authorizeFlag, files: "kc: " + kubeconfig("server: 'example.com:443'", ""), want: elsewhere},
		"address in an alias":           {flags: authorizeFlag, files: `kc: "a: &a https://example.com\ncluster: {server: *a}"`, want: "an anchor or alias"},
		"address of all interfaces":     {flags: authorizeFlag, files: "kc: " + kubeconfig("server: 'https://0.0.0.0:1'", ""), want: elsewhere},
		"address with a user":           {flags: authorizeFlag, files: "kc: " + kubeconfig("server: 'https://127.0.0.1@example.com'", ""), want: elsewhere},
		"proxy":                         {flags: authorizeFlag, files: "kc: " + kubeconfig(loopback+", proxy-url: 'http://example.com'", ""), want: elsewhere},
		"issuer":                        {flags: "authentication-config: $(files)/a", files: `a: "jwt: [{issuer: {url: 'https://example.com', audiences: [x]}}]"`, want: elsewhere},
		"socket":                        {flags: "egress-selector-config-file: $(files)/e", files: `e: "egressSelections: [{connection: {transport: {uds: {udsName: /run/docker.sock}}}}]"`, want: outside},
		"abstract socket":               {flags: "egress-selector-config-file: $(files)/e", files: `e: "egressSelections: [{connection: {transport: {uds: {udsName: '@x'}}}}]"`, want: outside},
		"certificates of a proxy":       {flags: "egress-selector-config-file: $(files)/e", files: `e: "tcp: {url: 'https://127.0.0.1:1', tlsConfig: {clientKey: /etc/x}}"`, want: outside},
		"file of a step":                {flags: authorizeFlag, step: "    - files: {write: {kc: " + kubeconfig("server: 'https://127.0.0.1:1'", runsCommand) + "}}\n", want: command},
		"file of a step, path":          {flags: authorizeFlag, step: `    - files: {write: {kc: "user: {tokenFile: $$(files)/../x}"}}` + "\n", want: outside},
		"file of a step, from a reply":  {flags: authorizeFlag, step: `    - files: {write: {kc: "user: {$(steps.one.object.metadata.name): x}"}}` + "\n", want: "has a placeholder $(steps.…)"},
		"file of a step, its name":      {flags: authorizeFlag, step: `    - files: {write: {$(steps.one.object.metadata.name): "x"}}` + "\n", want: "expected a relative path without placeholders"},
	} {
		t.Run(name, func(t *testing.T) {
			text := withServer(test.flags, test.files, test.step)
			_, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "one.yaml:") {
				t.Errorf("got the error %v, want its position and %q\n%s", err, test.want, text)
			}
		})
	}
}

// What a scenario needs in order to test admission is not refused.
func TestServerInside(t *testing.T) {
	kc := kubeconfig(loopback+", certificate-authority: $(files)/kube-apiserver/users-ca.crt, proxy-url: 'http://localhost:1'", "token: t, client-certificate: c.crt, client-key: $(files)/k")
	for name, test := range map[string]struct{ flags, files, step string }{
		"empty path":       {flags: "admission-control-config-file: ''"},
		"missing file":     {flags: admissionFlag},
		"kubeconfig":       {flags: authorizeFlag + ", authorization-mode: 'RBAC,Webhook'", files: "kc: " + kc},
		"IPv6":             {flags: authorizeFlag, files: "kc: " + kubeconfig("server: 'https://[::1]:1'", "")},
		"no kubeconfig":    {flags: authorizeFlag, files: "kc: this is no kubeconfig"},
		"tokens":           {flags: "token-auth-file: $(files)/t.csv", files: `t.csv: "\"a\",b,c\n/x,b,c"`},
		"audit policy":     {flags: "audit-policy-file: $(files)/p", files: `p: "rules: [{level: None, nonResourceURLs: [/healthz]}]"`},
		"static manifests": {flags: admissionFlag, files: "admission.yaml: " + webhookPlugin("staticManifestsDir: $(files)/static") + `, static/a.yaml: "webhooks: [{clientConfig: {url: 'https://example.com', service: {path: /x}}}]"`},
		"relative paths":   {flags: admissionFlag, files: "admission.yaml: " + admission("name: PodNodeSelector, path: sub/p.yaml") + `, sub/p.yaml: "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'a=b'}"`},
		"authentication":   {flags: "authentication-config: $(files)/a", files: `a: "jwt: [{issuer: {url: 'https://127.0.0.1:$(hooks.port)', audiences: ['https://example.com']}, claimValidationRules: [{expression: 'claims.x == 1'}]}]"`},
		"step":             {flags: authorizeFlag, files: "kc: " + kc, step: "    - files: {write: {kc: 'kind: Config'}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := withServer(test.flags, test.files, test.step)
			if _, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}}); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// The operator can allow flags by name, but not what the files of others have.
func TestAllowServerFlags(t *testing.T) {
	text := withServer("audit-log-path: /tmp/x, tracing-config-file: $(files)/t", "t: 'endpoint: x'", "")
	for _, test := range []struct {
		allowed []string
		refused bool
	}{{nil, true}, {[]string{"audit-log-path"}, true}, {[]string{"audit-log-path", "tracing-config-file"}, false}, {[]string{"*"}, false}} {
		t.Run(fmt.Sprint(test.allowed), func(t *testing.T) {
			_, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}, AllowServerFlags: test.allowed})
			if refused := err != nil; refused != test.refused {
				t.Errorf("with %v allowed: got the error %v, want one: %t", test.allowed, err, test.refused)
			}
		})
	}
	text = withServer(authorizeFlag, "kc: "+kubeconfig(loopback, runsCommand), "")
	if _, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}, AllowServerFlags: []string{"*"}}); err == nil {
		t.Error("a kubeconfig that executes a command was accepted")
	}
}

// The server of a PolicyTest is checked too.
func TestServerOfPolicyTest(t *testing.T) {
	const text = `apiVersion: admissiontest.dev/v1alpha1
kind: PolicyTest
metadata: {name: mine.policy}
server: {flags: {audit-log-path: /tmp/x}, files: {}}
policies:
  - apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingAdmissionPolicy
    metadata: {name: p}
    spec:
      matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}
      validations: [{expression: "false"}]
cases:
  - name: one
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
    denied: true
`
	if _, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}}); err == nil || !strings.Contains(err.Error(), `one.yaml:4:18: server.flags has "audit-log-path"`) {
		t.Errorf("got the error %v, want one about audit-log-path", err)
	}
}

func TestServerFeatureGates(t *testing.T) {
	text := strings.Replace(withServer("v: '1'", "", ""), "    flags:", "    featureGates: {\"A=true,B\": true}\n    flags:", 1)
	if _, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}}); err == nil || !strings.Contains(err.Error(), "is no feature gate") {
		t.Errorf("got %v, want an error for the name\n%s", err, text)
	}
}
