package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The pods of an Indexed Job write a report each, and a later one merges them, as in deploy/indexed-job.
func TestReportConfigMap(t *testing.T) {
	server, path := started(t)
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	of := client.CoreV1().ConfigMaps("default")
	dir := t.TempDir()
	inFile := func(index int) string { return filepath.Join(dir, fmt.Sprintf("report-%d.json.gz", index)) }
	get := func(name, file string) {
		t.Helper()
		stored, err := of.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, string(stored.BinaryData[report.CompressedFile]), 0o600)
	}
	for index := range 2 {
		t.Setenv("JOB_COMPLETION_INDEX", strconv.Itoa(index))
		for range 2 { // the second one replaces the report
			onCatalogue(t.Context(), "run", "wire.user-info", "wire.uid*", "chain", "--kubeconfig", path, "--shard", "job/2", "--report", fmt.Sprintf("configmap/default/report-%d", index)).check(t, exitPass)
		}
		get(fmt.Sprintf("report-%d", index), inFile(index))
	}
	onCatalogue(t.Context(), "report", "merge", "--kubeconfig", path, "--report", "configmap/default/report", inFile(0), inFile(1)).check(t, exitPass)
	get("report", filepath.Join(dir, "report.json.gz"))
	r, err := report.Read(filepath.Join(dir, "report.json.gz"))
	if err != nil || r.Shard != nil || r.Summary.Total < 4 || r.Summary.Total != r.Summary.Pass+r.Summary.Unsupported {
		t.Errorf("got %+v, %v", r.Summary, err)
	}

	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Data: map[string]string{"a": "b"}}
	if _, err := of.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		code int
		says string
	}{
		"default/theirs": {exitInfrastructure, "write report to ConfigMap default/theirs: it exists without the label admissiontest.dev/report"},
		"none/report":    {exitInfrastructure, `write report to ConfigMap none/report: namespaces "none" not found`},
		"report":         {exitUsage, `--report configmap/report: want configmap/NAMESPACE/NAME`},
		"A/b":            {exitUsage, `--report configmap/A/b: want configmap/NAMESPACE/NAME`},
	} {
		t.Run(name, func(t *testing.T) {
			got := onCatalogue(t.Context(), "run", "chain", "--kubeconfig", path, "--report", "configmap/"+name)
			got.check(t, test.code, test.says)
			if strings.Contains(got.stderr, "running") {
				t.Errorf("it ran before it found out:\n%s", got.stderr)
			}
		})
	}
	if now, err := of.Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil || now.Data["a"] != "b" || len(now.BinaryData) > 0 {
		t.Errorf("the ConfigMap of others is %+v, %v", now, err)
	}
}

// A run that a Job starts again leaves no report for what merges them.
func TestReportConfigMapOfIncompleteRun(t *testing.T) {
	for name, runErr := range map[string]error{"complete": nil, "interrupted": context.Canceled, "no server": framework.ErrNoResponse} {
		t.Run(name, func(t *testing.T) {
			saved := false
			var stdout, stderr safe
			a := &app{Process: Process{Stdout: &stdout, Stderr: &stderr}}
			f := &runFlags{saveToCluster: func(context.Context, report.Report) error { saved = true; return nil }}
			_ = a.finish(t.Context(), f, report.Report{}, runErr)
			if saved != (runErr == nil) {
				t.Errorf("saved: %t", saved)
			}
		})
	}
}

// The manifests of deploy are valid, their command lines too, and the parts of the Indexed Job are those that are merged.
func TestDeploy(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "deploy")
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	jobs := map[string]*batchv1.Job{}
	for _, file := range []string{"base/report.yaml", "base/faster.yaml", "job/job.yaml", "indexed-job/job.yaml"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(content), "\n---\n") {
			decoded, _, err := strict.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if job, ok := decoded.(*batchv1.Job); ok {
				jobs[filepath.Dir(file)+"/"+job.Name] = job
				checkArguments(t, append(job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers...)...)
			}
		}
	}
	parts, merge := jobs["indexed-job/admissiontest"], jobs["indexed-job/merge"]
	if parts == nil || merge == nil || jobs["job/admissiontest"] == nil {
		t.Fatalf("got %v", jobs)
	}
	run, pod := strings.Join(parts.Spec.Template.Spec.Containers[0].Args, " "), merge.Spec.Template.Spec
	count := int(*parts.Spec.Completions)
	merged := []string{"report", "merge", "--report", "configmap/admissiontest/report"}
	mounts := map[string]string{}
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil {
			mounts[volume.Name] = volume.ConfigMap.Name
		}
	}
	for index, mount := range pod.Containers[0].VolumeMounts[:count] {
		merged = append(merged, mount.MountPath)
		if want := fmt.Sprintf("report-%d", index); mounts[mount.Name] != want {
			t.Errorf("%s has the ConfigMap %q, want %q", mount.MountPath, mounts[mount.Name], want)
		}
	}
	if want := fmt.Sprintf("--shard job/%d --report configmap/admissiontest/report-$(JOB_COMPLETION_INDEX)", count); !strings.HasSuffix(run, want) {
		t.Errorf("the parts run %q, want the end %q", run, want)
	}
	if !slices.Equal(pod.Containers[0].Args, merged) {
		t.Errorf("got %q\nwant %q", pod.Containers[0].Args, merged)
	}
}

// checkArguments fails if a container has flags that the command does not have.
func checkArguments(t *testing.T, containers ...corev1.Container) {
	t.Helper()
	for _, container := range containers {
		onCatalogue(t.Context(), append(container.Args, "--help")...).check(t, exitPass)
	}
}
