package cli

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// If kube-apiserver of a control-plane node is killed in mid-run, all verdicts are right, or the exit code is 4. With
// several control-plane nodes the run goes on, although the killed one does not return before it ends; with one it
// depends on how long the restart takes. Nothing is left after cleanup.
func TestKindAPIServerIsKilled(t *testing.T) {
	kubeconfig := kindKubeconfig(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	nodes := controlPlanes(t, config)
	for _, node := range nodes {
		t.Run(node, func(t *testing.T) {
			// The manifest is moved away and back, because kubelet waits longer with each end of a container before it starts it again.
			end, begin := "mv /etc/kubernetes/manifests/kube-apiserver.yaml /kind/ && kill -9 $(pidof kube-apiserver)", "mv /kind/kube-apiserver.yaml /etc/kubernetes/manifests/"
			if len(nodes) == 1 {
				end, begin = end+" && sleep 2 && "+begin, "true" // it begins again in mid-run
			}
			killed := make(chan struct{})
			process, said := command(t.Context(), "run", "order", "vap", "reinvocation", "--kubeconfig", kubeconfig, "--transport", "url",
				"--patience", "3m") // if the API server of the leading controllers ends, others begin only when the lease has expired
			process.Stdout = said
			output := &interrupting{at: " done, ", cancel: sync.OnceFunc(func() {
				inNode(t, node, end)
				close(killed)
			})}
			process.Stderr = output
			_ = process.Run() // its exit code is checked
			code := process.ProcessState.ExitCode()
			select {
			case <-killed:
				inNode(t, node, begin+" && for i in $(seq 120); do curl -skf https://localhost:6443/readyz && exit; sleep 1; done; exit 1")
			default:
				t.Error("the run ended before kube-apiserver was killed")
			}
			wrong := code == exitPass && !strings.Contains(said.String(), " 0 fail,") // the failure of a SHOULD is a wrong verdict too
			if wrong || code != exitPass && (len(nodes) > 1 || code != exitInfrastructure) {
				t.Errorf("exit code %d\n%s%s", code, output.safe.String(), said)
			}
			if said := onCatalogue(t.Context(), "cleanup", "--kubeconfig", kubeconfig); said.code != exitPass {
				t.Errorf("cleanup: exit code %d\n%s%s", said.code, said.stderr, said.stdout)
			}
			if left := labelled(t, config); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			t.Logf("exit code %d: %s", code, bytes.TrimSpace(said.Bytes()[bytes.LastIndexByte(bytes.TrimSpace(said.Bytes()), '\n')+1:]))
		})
	}
}

// inNode runs a shell command in the container of a node of kind.
func inNode(t *testing.T, node, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "docker", "exec", node, "sh", "-c", script).CombinedOutput(); err != nil {
		t.Errorf("%s: %s: %v\n%s", node, script, err, out)
	}
}

// controlPlanes returns the names of the containers of the control-plane nodes.
func controlPlanes(t *testing.T, config *rest.Config) []string {
	t.Helper()
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(t.Context(), metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("the cluster has no control-plane node: %v", err)
	}
	var names []string
	for _, node := range nodes.Items {
		names = append(names, node.Name)
	}
	return names
}
