package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework"
)

// printed is the output of a command that is running.
type printed struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
}

// Write keeps the output, and closes ready when the first part has arrived.
func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text.Len() == 0 {
		close(p.ready)
	}
	return p.text.Write(text)
}

// serving starts the command serve, and returns it with the file of the kubeconfig that it printed.
func serving(t *testing.T) (c *exec.Cmd, kubeconfig string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server")
	}
	c, out := command(t, "serve"), &printed{ready: make(chan struct{})}
	c.Stdout = out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-out.ready:
	case <-ctx.Done():
		t.Fatal("serve printed no kubeconfig")
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	return c, file(t, "kubeconfig", out.text.String())
}

// serve prints a kubeconfig. Runs use all of the API server, and remove what they created, so a second run has the
// verdicts of the first. What others created remains. An interrupt ends the server.
func TestServe(t *testing.T) {
	served, kubeconfig := serving(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path := writing(t)
	for range 2 {
		dir := filepath.Join(t.TempDir(), "out")
		if code, stdout, stderr := outcome(command(t, "run", path, "--kubeconfig", kubeconfig, "--report", dir)); code != 0 {
			t.Fatalf("code %d\n%s%s", code, stdout, stderr)
		}
		if r := saved(t, dir); !r.Target.Served || r.Summary.Pass != 1 || r.Target.Kind != framework.TargetKubeconfig {
			t.Errorf("the report has %+v, %s", r.Target, r.Summary)
		}
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "mine", metav1.GetOptions{}); err != nil {
		t.Error("an object of another client is gone: ", err)
	}
	left, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("the runs left %d Nodes; %v", len(left.Items), err)
	}
	accounts, err := client.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(accounts.Items) > 0 {
		t.Errorf("the runs left %d ServiceAccounts, which Pods need; %v", len(accounts.Items), err)
	}
	if err := served.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := ended(t, served, time.Minute); code != 130 {
		t.Errorf("interrupted: code %d; want 130", code)
	}
}

// writing writes a scenario for which an API server with other clients is not enough: it creates a Node without an ID
// in its name, an object in a namespace of others, and a Pod, whose ServiceAccount no controller creates.
func writing(t *testing.T) string {
	t.Helper()
	return file(t, "writing.yaml", strings.TrimPrefix(`
apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.writing}
spec:
  level: MUST
  requirement: A run can use all of the API server.
  source: ["https://example.com/writing"]
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: a}
      spec:
        matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]}
        validations: [{expression: "false", message: no secrets}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: a}
      spec: {policyName: a, validationActions: [Deny]}
  when:
    - create: {apiVersion: v1, kind: Node, metadata: {name: fixed}}
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, namespace: kube-system}}
    - create: {apiVersion: v1, kind: Pod, metadata: {name: subject}, spec: {containers: [{name: a, image: a}]}}
    - create: {apiVersion: v1, kind: Secret, metadata: {name: subject}}
      then: {allowed: false, message: no secrets}
`, "\n"))
}
