package cli

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/internal/bystander"
)

// argsVariable has this very program carry out a command line in place of tests,
// so that there is a process to kill.
const argsVariable = "ADMISSIONTEST_TEST_ARGS"

// TestProcess is no test: see argsVariable.
func TestProcess(t *testing.T) {
	args := os.Getenv(argsVariable)
	if args == "" {
		t.Skip("it is the process that TestKill kills")
	}
	os.Exit(Main(context.Background(), strings.Split(args, "\n"), ThisProcess()))
}

// command is a process of a command line.
func command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	process := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestProcess$", "-test.count", "1")
	process.Env = append(os.Environ(), argsVariable+"="+strings.Join(args, "\n"))
	said := &bytes.Buffer{}
	process.Stdout, process.Stderr = said, said
	return process, said
}

// webhookTimeout is the shortest time that a leftover webhook nobody answers would
// hold up a request: a request that takes less met none. No scenario's is shorter
// than this but by a Hook that answers.
const webhookTimeout = 5 * time.Second

// kill kills a run of the catalogue by SIGKILL, at random moments. Whatever it
// leaves disturbs nobody, and cleanup finds it all.
// The transports take turns.
func kill(t *testing.T, kubeconfig string, times int, longest time.Duration, transports ...string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	other, err := bystander.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := other.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	most := 0
	for n := range times {
		after := 300*time.Millisecond + time.Duration(random.Int64N(int64(longest)))
		transport := transports[n%len(transports)]
		process, said := command(t.Context(), "run", "--kubeconfig", kubeconfig, "--transport", transport)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = process.Wait(); close(ended) }()
		select {
		case <-ended:
			t.Logf("kill %d: it ended before", n)
		case <-time.After(after):
			if err := process.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-ended
		}
		left := labelled(t, config)
		most = max(most, len(left))
		// Before anybody cleans up.
		other.Write(t.Context(), 24, 4)
		report := other.Take()
		if err := report.Check(); err != nil {
			t.Errorf("kill %d after %s, %d objects left: %v\n%s", n, after, len(left), err, said)
		}
		if report.Longest() >= webhookTimeout {
			t.Errorf("kill %d after %s: a request of somebody else's took %s; is there a webhook that nobody answers?", n, after, report.Longest())
		}
		t.Logf("kill %d (%s) after %s: %d objects left; %d requests of a bystander, median %s, longest %s", n, transport, after.Round(time.Millisecond),
			len(left), len(report.Durations), report.Median().Round(10*time.Microsecond), report.Longest().Round(time.Millisecond))
		process, said = command(t.Context(), "cleanup", "--kubeconfig", kubeconfig)
		if err := process.Run(); err != nil {
			t.Errorf("kill %d after %s: cleanup: %v\n%s", n, after, err, said)
		}
		if still := labelled(t, config); len(still) > 0 {
			t.Errorf("kill %d after %s: cleanup left %v", n, after, still)
		}
	}
	if most < 10 {
		t.Errorf("no kill left more than %d objects; was anything running?", most)
	}
}

// labelled lists every object on the cluster, of every resource, that has our
// label or is in a namespace of ours.
func labelled(t *testing.T, config *rest.Config) []string {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			items, err := objects.Resource(gv.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				continue // its definition has just gone
			}
			for _, item := range items.Items {
				if item.Labels[cluster.RunLabel] != "" || strings.HasPrefix(item.Namespace, "at-") {
					found = append(found, resource.Name+"/"+item.Namespace+"/"+item.Name)
				}
			}
		}
	}
	return found
}

// served starts an API server here and returns its kubeconfig.
func served(t *testing.T) (*envtest.Server, string) {
	t.Helper()
	binaries, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	envtest.DiscardLogs()
	server, err := envtest.Start(t.Context(), envtest.Options{Assets: binaries})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, path
}

func kindKubeconfig(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ADMISSIONTEST_KIND_KUBECONFIG")
	if path == "" {
		t.Skip("ADMISSIONTEST_KIND_KUBECONFIG is not set: it needs a kind cluster: make test-kind")
	}
	return path
}

func TestKill(t *testing.T) {
	_, kubeconfig := served(t)
	kill(t, kubeconfig, 3, 6*time.Second, framework.TransportURL)
}

func TestKindKill(t *testing.T) {
	kill(t, kindKubeconfig(t), 20, 25*time.Second, framework.TransportURL, framework.TransportService)
}

// A run that is killed leaves the kind cluster it made, and cleanup deletes it: at
// once, while Docker is still at it, or somewhere before its end.
func TestKindClusterOfKilledRun(t *testing.T) {
	kindKubeconfig(t)
	for _, after := range []time.Duration{0, rand.N(10 * time.Second)} {
		t.Run(after.Round(time.Millisecond).String(), func(t *testing.T) { killedCluster(t, after) })
	}
}

func killedCluster(t *testing.T, after time.Duration) {
	args := []string{"run", "wire", "--target", "kind"}
	for flag, value := range map[string]string{"--node-image": os.Getenv("NODE_IMAGE"), "--kind-config": os.Getenv("KIND_CONFIG")} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	process, said := command(t.Context(), args...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	var found []*kind.Cluster
	for len(found) == 0 {
		select {
		case <-ended:
			t.Fatalf("it ended without a cluster:\n%s", said)
		case <-time.After(100 * time.Millisecond):
		}
		var err error
		if found, err = kind.Leftovers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ended:
		t.Fatalf("it ended before it was killed:\n%s", said)
	case <-time.After(after):
	}
	if err := process.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-ended
	process, said = command(t.Context(), "cleanup", "--target", "kind")
	if err := process.Run(); err != nil || !strings.Contains(said.String(), "removed kind cluster "+found[0].Name()) {
		t.Errorf("cleanup: %v; want that it removed %s:\n%s", err, found[0].Name(), said)
	}
	if left, err := kind.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("Leftovers = %v, %v; want none", left, err)
	}
}

// The API server of a kubeconfig stops in mid-run: exit 4, and what was found out
// before is told.
func TestKindServerDies(t *testing.T) {
	kubeconfig := kindKubeconfig(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	node, err := controlPlane(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	docker := func(verb string) {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "docker", verb, node).CombinedOutput(); err != nil {
			t.Fatalf("docker %s %s: %v\n%s", verb, node, err, out)
		}
	}
	dir := t.TempDir()
	process, said := command(t.Context(), "run", "--kubeconfig", kubeconfig, "--transport", "url", "--report", dir)
	output := &beacon{want: "of ", seen: make(chan struct{})}
	process.Stderr = output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-output.seen:
	case <-time.After(2 * time.Minute):
		t.Fatal("no scenario was done in two minutes")
	}
	docker("kill")
	began := time.Now()
	err = process.Wait()
	docker("start")
	if code := process.ProcessState.ExitCode(); code != ExitInfrastructure {
		t.Errorf("exit code %d (%v) after %s; want %d\n%s%s", code, err, time.Since(began), ExitInfrastructure, said, output.text.String())
	}
	saved, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil || !bytes.Contains(saved, []byte(`"pass"`)) || !bytes.Contains(saved, []byte(`"incomplete": "`)) {
		t.Errorf("the report has no outcome that passed, or is not incomplete: %v", err)
	}
	t.Logf("told in %s: %s", time.Since(began).Round(time.Millisecond), output.last())
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if _, err := cluster.Cleanup(t.Context(), config, "", nil); err == nil {
			return
		}
	}
	t.Error("the cluster does not come back, or cannot be cleaned")
}

// beacon is a writer that tells when a text was written.
type beacon struct {
	text safe // not embedded: it would be filled by ReadFrom, past Write
	want string
	seen chan struct{}
	told bool
}

func (s *beacon) Write(data []byte) (int, error) {
	n, err := s.text.Write(data)
	if !s.told && bytes.Contains(data, []byte(s.want)) && bytes.Contains(data, []byte(" done")) {
		s.told = true
		close(s.seen)
	}
	return n, err
}

func (s *beacon) last() string {
	lines := strings.Split(strings.TrimSpace(s.text.String()), "\n")
	return lines[len(lines)-1]
}

// controlPlane is the name of the node's container.
func controlPlane(ctx context.Context, config *rest.Config) (string, error) {
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return "", err
	}
	nodes, err := objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	if err != nil || len(nodes.Items) == 0 {
		return "", err
	}
	return nodes.Items[0].Name, nil
}

// A kubeconfig without rights ends with exit 4, naming them.
func TestNoRights(t *testing.T) {
	server, _ := served(t)
	loaded, err := clientcmd.Load(server.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range loaded.AuthInfos {
		user.Impersonate = "stranger"
	}
	path := filepath.Join(t.TempDir(), "stranger")
	if err := clientcmd.WriteToFile(*loaded, path); err != nil {
		t.Fatal(err)
	}
	process, said := command(t.Context(), "run", "wire", "--kubeconfig", path)
	_ = process.Run()
	if code := process.ProcessState.ExitCode(); code != ExitInfrastructure {
		t.Errorf("exit code %d; want %d", code, ExitInfrastructure)
	}
	for _, part := range []string{path, "user stranger: rights are missing:", "create namespaces", "nothing was created"} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("output lacks %q:\n%s", part, said)
		}
	}
}
