package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// own is a home folder, and the commands of a user who has it.
type own struct {
	*testing.T
	home, assets string
}

// newOwn returns a user for whom no API server is kept. At the end of the test none is kept.
func newOwn(t *testing.T) own {
	t.Helper()
	if testing.Short() {
		t.Skip("starts API servers")
	}
	binaries, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "at") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	o := own{t, home, binaries.Dir}
	t.Cleanup(func() {
		for _, key := range o.kept() {
			if code, _, stderr := outcome(o.command("serve", "stop", key)); code != 0 {
				t.Errorf("stop %s: code %d: %s", key, code, stderr)
			}
		}
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o own) command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...) //nolint:gosec // this program
	c.Env = append(os.Environ(), beCommand+"=1", "HOME="+o.home, "XDG_CACHE_HOME=", "KUBEBUILDER_ASSETS="+o.assets)
	return c
}

// kept returns the keys of the API servers that are kept.
func (o own) kept() []string {
	o.Helper()
	code, stdout, stderr := outcome(o.command("serve", "list"))
	if code != 0 {
		o.Fatalf("serve list: code %d: %s", code, stderr)
	}
	var keys []string
	for line := range strings.Lines(stdout) {
		keys = append(keys, strings.Fields(line)[0])
	}
	return keys
}

// passes runs scenarios that must pass, and checks whether an API server that is kept was used. It
// returns standard error.
func (o own) passes(kept bool, args ...string) string {
	o.Helper()
	code, stdout, stderr := outcome(o.command(append([]string{"run"}, args...)...))
	if code != 0 {
		o.Errorf("run %v: code %d\n%s%s", args, code, stdout, stderr)
	}
	if got := strings.Contains(stdout, "kept for several runs"); got != kept {
		o.Errorf("run %v: used an API server that is kept: %t; want %t\n%s%s", args, got, kept, stdout, stderr)
	}
	return stderr
}

// client returns a client of the API server that is kept.
func (o own) client() *kubernetes.Clientset {
	o.Helper()
	code, stdout, stderr := outcome(o.command("serve", "kubeconfig"))
	if code != 0 {
		o.Fatalf("serve kubeconfig: code %d: %s", code, stderr)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(stdout))
	if err != nil {
		o.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		o.Fatal(err)
	}
	return client
}

// writing writes a scenario that writes outside of its namespace, reads the audit log, and installs a
// policy. It fails if an earlier run left what it creates.
func writing(t *testing.T) string {
	t.Helper()
	return file(t, "writing.yaml", `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.writing}
spec:
  level: MUST
  requirement: What a run writes is undone.
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
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: fixed-name, namespace: kube-system}}
      then: {allowed: true, audit: {level: RequestResponse}}
    - patch: {apiVersion: v1, kind: Namespace, name: default, merge: {metadata: {labels: {by: run}}}}
    - create: {apiVersion: v1, kind: Secret, metadata: {name: subject}}
      then: {allowed: false, message: no secrets}
`)
}

// withParams writes scenarios whose policies read parameters of a kind that no other part of kube-apiserver
// watches. The first is alone in its wave: no policy uses the kind after it. Steps change the parameters.
func withParams(t *testing.T) string {
	t.Helper()
	const policy = `
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: a}
      spec:
        paramKind: {apiVersion: v1, kind: ConfigMap}
        matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [coordination.k8s.io], apiVersions: [v1], resources: [leases]}]}
        validations: [{expression: "false", messageExpression: "'most ' + params.data.most"}]
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: a}
      spec: {policyName: a, validationActions: [Deny], paramRef: {name: limit, parameterNotFoundAction: Allow}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: limit}, data: {most: "1"}}
`
	text := ""
	for _, name := range []string{"alone", "one", "two"} {
		text += fmt.Sprintf(`---
apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.%s}
spec:
  level: MUST
  requirement: Policies see their parameters.
  source: ["https://example.com/params"]
  exclusive: %t
  given: %s  when:
    - create: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: subject}}
      then: {allowed: false, message: most 1}
    - patch: {apiVersion: v1, kind: ConfigMap, name: limit, merge: {data: {most: "2"}}}
    - create: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: subject}}
      then: {allowed: false, message: most 2}
    - delete: {apiVersion: v1, kind: ConfigMap, name: limit}
    - create: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: subject}}
    - install: [{apiVersion: v1, kind: ConfigMap, metadata: {name: limit}, data: {most: "3"}}]
    - create: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: other}}
      then: {allowed: false, message: most 3}
`, name, name == "alone", policy)
	}
	return file(t, "params.yaml", strings.TrimPrefix(text, "---\n"))
}

func TestServe(t *testing.T) {
	o := newOwn(t)
	code, stdout, stderr := outcome(o.command("serve", "--background"))
	if code != 0 || !strings.HasPrefix(stdout, "API server v") {
		t.Fatalf("code %d\n%s%s", code, stdout, stderr)
	}
	quick := slow(t, 0, true)
	t.Run("runs use it", func(t *testing.T) {
		o.T = t
		o.passes(true, quick, "--report", filepath.Join(o.home, "out"))
		if r := saved(t, filepath.Join(o.home, "out")); !r.Target.Served {
			t.Error("report.json does not say that the server was kept for several runs")
		}
	})
	t.Run("--fresh does not", func(t *testing.T) {
		o.T = t
		o.passes(false, quick, "--fresh")
	})
	t.Run("a second one is refused", func(t *testing.T) {
		code, stdout, stderr := outcome(o.command("serve", "--background"))
		if code != 2 || stdout != "" || !strings.Contains(stderr, "serves this API server already (free); stop it with: admissiontest serve stop") {
			t.Errorf("code %d\n%s%s", code, stdout, stderr)
		}
	})
	t.Run("what a run writes is undone, and nothing else", func(t *testing.T) {
		o.T = t
		mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
		if _, err := o.client().CoreV1().ConfigMaps("default").Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		path := writing(t)
		o.passes(true, path)
		o.passes(true, path)
		o.passes(true, quick) // it begins when the state of the last one is undone
		if _, err := o.client().CoreV1().ConfigMaps("default").Get(t.Context(), "mine", metav1.GetOptions{}); err != nil {
			t.Error("an object of another client is gone: ", err)
		}
		namespace, err := o.client().CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil || namespace.Labels["by"] != "" {
			t.Errorf("namespace default has the labels %v; %v", namespace.Labels, err)
		}
	})
	t.Run("policies of each run see their parameters", func(t *testing.T) {
		o.T = t
		path := withParams(t)
		for range 3 {
			o.passes(true, path)
		}
	})
	t.Run("one run at a time, and one that is killed", func(t *testing.T) {
		o.T = t
		first := o.command("run", slow(t, 25*time.Second, true))
		running(t, first)
		if printed := o.passes(false, quick); !strings.Contains(printed, "another run uses the server") {
			t.Errorf("the second run does not say why it does not use the server:\n%s", printed)
		}
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait()
		o.passes(true, quick)
		o.passes(true, quick)
		// What the last run wrote is undone in the background.
		namespaces, left := o.client().CoreV1().Namespaces(), 0
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			list, err := namespaces.List(ctx, metav1.ListOptions{LabelSelector: "admissiontest.dev/run"})
			if err != nil {
				return false, err
			}
			left = len(list.Items)
			return left == 0, nil
		})
		if err != nil {
			t.Errorf("%d namespaces are left; %v", left, err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		o.T = t
		_, stdout, _ := outcome(o.command("serve", "list"))
		found := regexp.MustCompile(`, process ([0-9]+),`).FindStringSubmatch(stdout)
		if found == nil {
			t.Fatalf("serve list printed %q", stdout)
		}
		process, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		o.passes(false, quick)
		if kept := o.kept(); len(kept) > 0 {
			t.Errorf("serve list printed %v", kept)
		}
	})
}

// serve ends by itself when no run uses the server, by an interrupt, and when it is stopped.
func TestServeEnds(t *testing.T) {
	o := newOwn(t)
	code, stdout, stderr := outcome(o.command("serve", "--idle", "100ms"))
	if code != 0 || !strings.Contains(stdout, "is ready for runs") || !strings.Contains(stderr, "no run used it for 100ms") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	ready := func() *exec.Cmd {
		c := o.command("serve")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("got %q: %v", line, err)
		}
		return c
	}
	interrupted := ready()
	if err := interrupted.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := ended(t, interrupted, time.Minute); code != 130 {
		t.Errorf("interrupted: code %d; want 130", code)
	}
	if kept := o.kept(); len(kept) > 0 {
		t.Errorf("serve list printed %v", kept)
	}
	stopped := ready()
	if code, _, stderr := outcome(o.command("serve", "stop")); code != 0 {
		t.Errorf("stop: code %d: %s", code, stderr)
	}
	if code := ended(t, stopped, time.Minute); code != 0 {
		t.Errorf("stopped: code %d; want 0", code)
	}
	if code, _, stderr := outcome(o.command("serve", "stop")); code != 2 || !strings.Contains(stderr, "no API server is kept") {
		t.Errorf("stop without a server: code %d: %s", code, stderr)
	}
}
