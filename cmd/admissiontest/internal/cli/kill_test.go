package cli

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/hack/bystander"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// argsVariable makes the test binary run a command line instead of tests, as a process
// that can be killed.
const argsVariable = "ADMISSIONTEST_TEST_ARGS"

// TestProcess is not a test: see argsVariable.
func TestProcess(t *testing.T) {
	args := os.Getenv(argsVariable)
	if args == "" {
		t.Skip("only TestKill runs this, as a process that it kills")
	}
	ctx, _ := Interruptible(context.Background(), os.Stderr)
	os.Exit(Main(ctx, strings.Split(args, "\n"), ThisProcess()))
}

// command returns a process that runs a command line, and its output. When ctx ends, the
// process is killed by SIGKILL.
func command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	process := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestProcess$", "-test.count", "1")
	process.Env = append(os.Environ(), argsVariable+"="+strings.Join(args, "\n"))
	said := &bytes.Buffer{}
	process.Stdout, process.Stderr = said, said
	return process, said
}

// webhookTimeout is the shortest timeout of a webhook in the catalogue that waits for a
// Hook. A request that took less did not wait for a webhook that a killed run left.
const webhookTimeout = 5 * time.Second

// kill kills runs of the catalogue by SIGKILL, at random moments and the last one when its scenarios run, with
// each transport in turn. The objects that a run left must not disturb other clients, and cleanup must
// remove all of them.
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
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if n == times-1 {
			cancel()
			ctx, cancel = context.WithCancel(t.Context())
		}
		process, said := command(ctx, "run", "--kubeconfig", kubeconfig, "--transport", transport)
		if n == times-1 {
			all := io.MultiWriter(said, &interrupting{at: "\nrunning ", cancel: cancel})
			process.Stdout, process.Stderr = all, all
		}
		_ = process.Run() // it is killed
		if ctx.Err() == nil {
			t.Logf("kill %d: the run ended before", n)
		}
		cancel()
		left := labelled(t, config)
		most = max(most, len(left))
		// Before the cleanup.
		other.Write(t.Context(), 24, 4)
		report := other.Take()
		if err := report.Check(); err != nil {
			t.Errorf("kill %d after %s, %d objects left: %v\n%s", n, after, len(left), err, said)
		}
		if report.Longest() >= webhookTimeout {
			t.Errorf("kill %d after %s: a request of another client took %s; did the run leave a webhook that is still called?", n, after, report.Longest())
		}
		t.Logf("kill %d (%s) after %s: %d objects left; %d requests of a bystander, median %s, longest %s", n, transport, after.Round(time.Millisecond),
			len(left), len(report.Durations), report.Median().Round(10*time.Microsecond), report.Longest().Round(time.Millisecond))
		process, said = command(t.Context(), "cleanup", "--kubeconfig", kubeconfig)
		if err := process.Run(); err != nil {
			t.Errorf("kill %d after %s: cleanup: %v\n%s", n, after, err, said)
		}
		if len(left) > 0 && !strings.Contains(said.String(), "removed namespaces/at-") {
			t.Errorf("kill %d after %s: cleanup does not say what it removed:\n%s", n, after, said)
		}
		if still := labelled(t, config); len(still) > 0 {
			t.Errorf("kill %d after %s: cleanup left %v", n, after, still)
		}
	}
	if most < 10 {
		t.Errorf("no killed run left more than %d objects; want at least 10, or the kills came too early", most)
	}
}

// labelled lists all objects on the cluster, of all resources, that have the label of a
// run or are in the namespace of a run.
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
				continue // its CustomResourceDefinition was deleted meanwhile
			}
			for _, item := range items.Items {
				if strings.HasPrefix(item.Namespace, runid.Prefix("")) || item.Labels[apiserver.RunLabel] != "" {
					found = append(found, resource.Name+"/"+item.Namespace+"/"+item.Name)
				}
			}
		}
	}
	return found
}

// started starts an API server and returns it with the path of its kubeconfig.
func started(t *testing.T) (*envtest.Server, string) {
	t.Helper()
	binaries, err := binaries.Ensure(t.Context(), binaries.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	server, err := envtest.Start(t.Context(), envtest.Options{BinaryAssetsDirectory: binaries.Dir})
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
	_, kubeconfig := started(t)
	kill(t, kubeconfig, 3, 6*time.Second, framework.TransportURL)
}

func TestKindKill(t *testing.T) {
	kill(t, kindKubeconfig(t), 20, 25*time.Second, framework.TransportURL, framework.TransportService)
}

// A killed run leaves the kind cluster that it created, and cleanup deletes it. The kill
// comes as soon as the cluster exists, while Docker still works on it, or later.
func TestKindClusterOfKilledRun(t *testing.T) {
	kindKubeconfig(t)
	for _, after := range []time.Duration{0, rand.N(10 * time.Second)} {
		t.Run(after.Round(time.Millisecond).String(), func(t *testing.T) { killedCluster(t, after) })
	}
}

func killedCluster(t *testing.T, after time.Duration) {
	process, said := command(t.Context(), "run", "wire", "--target", "kind")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	running, stopped := context.WithCancel(t.Context())
	go func() { _ = process.Wait(); stopped() }()
	var found []*kind.Cluster
	err := wait.PollUntilContextCancel(running, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		found, err = kind.RunClusters(ctx)
		return len(found) > 0, err
	})
	if err != nil {
		t.Fatalf("wait for a cluster: %v; the run printed:\n%s", err, said)
	}
	kill := time.AfterFunc(after, func() { _ = process.Process.Kill() })
	<-running.Done()
	if kill.Stop() {
		t.Fatalf("the run ended before it was killed:\n%s", said)
	}
	process, said = command(t.Context(), "cleanup", "--target", "kind")
	if err := process.Run(); err != nil || !strings.Contains(said.String(), "removed kind cluster "+found[0].Name()) {
		t.Errorf("cleanup: %v; want a line that it removed %s:\n%s", err, found[0].Name(), said)
	}
	if left, err := kind.RunClusters(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("RunClusters = %v, %v; want none", left, err)
	}
}
