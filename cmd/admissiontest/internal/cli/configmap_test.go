package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
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
	arguments := []string{"report", "merge", "--kubeconfig", path, "--report-configmap", "default/report"}
	for index := range 2 {
		t.Setenv("JOB_COMPLETION_INDEX", strconv.Itoa(index))
		name := fmt.Sprintf("report-%d", index)
		for range 2 { // the second one replaces the report
			onCatalogue(t.Context(), "run", "wire.user-info", "wire.uid*", "chain", "--kubeconfig", path, "--shard", "job/2", "--report-configmap", "default/"+name).check(t, exit.Pass)
		}
		stored, err := of.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), name)
		arguments = append(arguments, dir)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, report.CompressedFile), stored.BinaryData[report.CompressedFile], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := onCatalogue(t.Context(), arguments...)
	got.check(t, exit.Pass)
	stored, err := of.Get(t.Context(), "report", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	if err := os.WriteFile(merged, stored.BinaryData[report.CompressedFile], 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(merged)
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
		"default/theirs": {exit.Infrastructure, "write report to ConfigMap default/theirs: it exists without the label admissiontest.dev/report"},
		"none/report":    {exit.Infrastructure, `write report to ConfigMap none/report: namespaces "none" not found`},
		"report":         {exit.Usage, `--report-configmap "report": want NAMESPACE/NAME`},
		"A/b":            {exit.Usage, `--report-configmap "A/b": want NAMESPACE/NAME`},
	} {
		t.Run(name, func(t *testing.T) {
			got := onCatalogue(t.Context(), "run", "chain", "--kubeconfig", path, "--report-configmap", name)
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
			_ = a.finish(t.Context(), f, false, report.Report{}, runErr)
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
	run, merged := parts.Spec.Template.Spec.Containers[0].Args, merge.Spec.Template.Spec.Containers[0].Args
	var sources []string
	for _, volume := range merge.Spec.Template.Spec.Volumes {
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				sources = append(sources, source.ConfigMap.Name)
			}
		}
	}
	count := int(*parts.Spec.Completions)
	if !strings.Contains(strings.Join(run, " "), fmt.Sprintf("--shard job/%d --report-configmap admissiontest/report-$(JOB_COMPLETION_INDEX)", count)) || len(sources) != count {
		t.Errorf("%d completions, %v, merged are %v", count, run, sources)
	}
	for index := range count {
		if part := fmt.Sprintf("/reports/%d", index); !strings.Contains(strings.Join(merged, " "), part+" ") || sources[index] != fmt.Sprintf("report-%d", index) {
			t.Errorf("part %d: %v and %v", index, merged, sources)
		}
	}
}

// checkArguments fails if a container has flags that the command does not have.
func checkArguments(t *testing.T, containers ...corev1.Container) {
	t.Helper()
	for _, container := range containers {
		onCatalogue(t.Context(), append(container.Args, "--help")...).check(t, exit.Pass)
	}
}
