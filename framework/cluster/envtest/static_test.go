package envtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// staticPolicy denies ConfigMaps with a message.
const staticPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: denies.static.k8s.io}
spec:
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], resourceNames: [subject]}]}
  validations: [{expression: "false", message: %q}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: denies.static.k8s.io}
spec: {policyName: denies.static.k8s.io, validationActions: [Deny]}
`

// The API server reads static manifests again after a change (behaviour STATIC-010), keeps the
// last good ones when it cannot (STATIC-011), and has none when all files are gone
// (STATIC-012). A scenario cannot change the files of its server.
func TestStaticManifestsAreReread(t *testing.T) {
	found, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(found.Version, "1.34.") || strings.HasPrefix(found.Version, "1.35.") {
		t.Skip("static manifests came with 1.36")
	}
	server, err := Start(t.Context(), Options{Assets: found, Profile: Profile{
		Flags:        map[string]string{"admission-control-config-file": "$(files)/admission.yaml"},
		FeatureGates: map[string]bool{"ManifestBasedAdmissionControlConfig": true},
		Files: map[string]string{
			"static/a.yaml": fmt.Sprintf(staticPolicy, "first text"),
			"admission.yaml": `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: $(files)/static}
`,
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := rest.HTTPClientFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := staticServer{t: t, client: client, address: server.Config.Host, file: filepath.Join(server.files(), "static", "a.yaml")}
	s.until("first text", s.create)
	s.write(fmt.Sprintf(staticPolicy, "second text"))
	s.until("second text", s.create)
	s.write("this is no manifest")
	s.until(`status="failure"`, s.reloads)
	if got := s.create(); !strings.Contains(got, "second text") {
		t.Errorf("after a bad file: %s; want the policy before", got)
	}
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	s.until(`"name":"subject"`, s.create)
}

// staticServer is a server with one file of static manifests.
type staticServer struct {
	t             *testing.T
	client        *http.Client
	address, file string
}

// write replaces the file at once.
func (s staticServer) write(content string) {
	s.t.Helper()
	next := s.file + ".next"
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.file); err != nil {
		s.t.Fatal(err)
	}
}

// until waits until an answer contains a text: the API server rereads its files at least
// each minute.
func (s staticServer) until(text string, ask func() string) {
	s.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(s.t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		last = ask()
		return strings.Contains(last, text), nil
	})
	if err != nil {
		s.t.Fatalf("wait for %q: %v; the last answer was %s", text, err, last)
	}
}

// create returns the answer to a dry run.
func (s staticServer) create() string {
	return s.send(http.MethodPost, "/api/v1/namespaces/default/configmaps?dryRun=All", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "subject"}}`)
}

// reloads returns the metrics of rereading.
func (s staticServer) reloads() string {
	var lines []string
	for line := range strings.Lines(s.send(http.MethodGet, "/metrics", "")) {
		if strings.Contains(line, "automatic_reloads_total{") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func (s staticServer) send(method, path, body string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(answer)
}
