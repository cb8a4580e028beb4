package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The Jobs of deploy run on a cluster, with one pod and with four, of which one is deleted while it runs. Their verdicts
// are the same, and they leave nothing but their reports.
func TestKindJobs(t *testing.T) {
	path := kindKubeconfig(t)
	loaded, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kind.Use(t.Context(), strings.TrimPrefix(loaded.CurrentContext, "kind-"))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "self.tar")
	onCatalogue(t.Context(), "image", "--self", "--tarball", archive, "--tag", "admissiontest:local").check(t, exitPass)
	if err := cluster.LoadImage(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	j := jobs{t: t, kubeconfig: path}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if j.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}

	j.kubectl("apply", "-k", deployed("job"))
	t.Cleanup(func() { j.kubectl("delete", "--ignore-not-found", "-k", deployed("job")) })
	one := j.report("admissiontest")
	j.kubectl("--namespace", jobNamespace, "delete", "job/admissiontest", "configmap/report")
	j.kubectl("apply", "-k", deployed("indexed-job"))
	j.deletePod("2")
	four := j.report("merge")
	if one.Summary.Pass < 300 || one.Summary.Fail+one.Summary.Error+one.Summary.Inconclusive > 0 {
		t.Errorf("one pod: %s", one.Summary)
	}
	verdicts := map[string]string{}
	for _, outcome := range one.Outcomes {
		verdicts[outcome.Name] = string(outcome.Verdict)
	}
	for _, outcome := range four.Outcomes {
		if want := verdicts[outcome.Name]; string(outcome.Verdict) != want {
			t.Errorf("%s: %s with four pods, want %s: %s", outcome.Name, outcome.Verdict, want, outcome.Reason)
		}
	}
	if len(four.Outcomes) != len(one.Outcomes) {
		t.Errorf("%d outcomes with four pods, %d with one", len(four.Outcomes), len(one.Outcomes))
	}
	if left := labelled(t, config); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

const jobNamespace = "admissiontest"

func deployed(name string) string { return filepath.Join("..", "..", "..", "..", "deploy", name) }

// jobs runs the Jobs of deploy.
type jobs struct {
	t          *testing.T
	kubeconfig string
	client     *kubernetes.Clientset
}

func (j jobs) kubectl(args ...string) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.t.Context()), 20*time.Minute)
	defer cancel()
	if said, err := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", j.kubeconfig}, args...)...).CombinedOutput(); err != nil {
		j.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

// report waits until a Job is complete, and returns the report in the cluster.
func (j jobs) report(job string) report.Report {
	j.t.Helper()
	j.kubectl("--namespace", jobNamespace, "wait", "--for=condition=Complete", "--timeout=15m", "job/"+job)
	stored, err := j.client.CoreV1().ConfigMaps(jobNamespace).Get(j.t.Context(), "report", metav1.GetOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	path := filepath.Join(j.t.TempDir(), report.CompressedFile)
	if err := os.WriteFile(path, stored.BinaryData[report.CompressedFile], 0o600); err != nil {
		j.t.Fatal(err)
	}
	r, err := report.Read(path)
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Logf("job %s: %s", job, r.Summary)
	return r
}

// deletePod deletes the pod with a completion index, when its run has created something.
func (j jobs) deletePod(index string) {
	j.t.Helper()
	err := wait.PollUntilContextTimeout(j.t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := j.client.CoreV1().Pods(jobNamespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-completion-index=" + index})
		if err != nil || len(pods.Items) == 0 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return false, err
		}
		log, err := j.client.CoreV1().Pods(jobNamespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil || !strings.Contains(string(log), "running ") {
			return false, err
		}
		return true, j.client.CoreV1().Pods(jobNamespace).Delete(ctx, pods.Items[0].Name, metav1.DeleteOptions{})
	})
	if err != nil {
		j.t.Fatal(fmt.Errorf("delete the pod with index %s while it runs: %w", index, err))
	}
}
