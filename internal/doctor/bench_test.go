package doctor

import (
	"fmt"
	"runtime"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// bigCluster is a cluster with configurations of webhooks with selectors, some with match conditions, and namespaces.
func bigCluster(configurations, webhooks, namespaces int) *Snapshot {
	s := &Snapshot{Minor: 36, Resources: kinds.BuiltIn(), Missing: map[string]string{}}
	for i := range namespaces {
		name := fmt.Sprint("ns-", i)
		s.Objects = append(s.Objects, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]any{nameLabel: name, "team": fmt.Sprint(i % 50)}}})
	}
	all := make([][]any, configurations)
	for i := range webhooks {
		of := i % configurations
		webhook := map[string]any{
			"name": fmt.Sprintf("w%d.example.com", i), "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(5),
			"clientConfig":      map[string]any{"service": map[string]any{"namespace": fmt.Sprint("ns-", of), "name": "webhook"}},
			"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": nameLabel, "operator": "NotIn", "values": []any{"kube-system"}}}},
			"rules": []any{map[string]any{
				"operations": []any{"CREATE", "UPDATE"}, "apiGroups": []any{"", "apps", "batch"}, "apiVersions": []any{"v1"}, "resources": []any{"pods", "deployments", "jobs", "configmaps"},
			}},
		}
		if i%4 == 0 {
			webhook["matchConditions"] = []any{map[string]any{"name": "user", "expression": fmt.Sprintf(`request.userInfo.username != "user-%d"`, i)}}
		}
		all[of] = append(all[of], webhook)
	}
	for i, list := range all {
		kind := []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}[i%2]
		s.Objects = append(s.Objects,
			map[string]any{"apiVersion": admissionregistrationv1.SchemeGroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": fmt.Sprint("c", i)}, "webhooks": list},
			map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "webhook", "namespace": fmt.Sprint("ns-", i)}, "spec": map[string]any{"selector": map[string]any{"app": fmt.Sprint(i)}, "ports": []any{map[string]any{"port": int64(443)}}}},
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "webhook", "namespace": fmt.Sprint("ns-", i)}, "spec": map[string]any{"replicas": int64(2), "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": fmt.Sprint(i)}}}}})
	}
	return s
}

// BenchmarkJudge judges clusters after their lists arrived. Limits for 400 webhooks: 2 s, 200 MiB in use.
func BenchmarkJudge(b *testing.B) {
	for _, webhooks := range []int{100, 200, 400} {
		b.Run(fmt.Sprint(webhooks, " webhooks"), func(b *testing.B) {
			for b.Loop() {
				snapshot := bigCluster(60, webhooks, 2000)
				report, err := Judge(b.Context(), Input{Cluster: snapshot})
				if err != nil || report.Webhooks != webhooks {
					b.Fatalf("judged %d webhooks, want %d: %v", report.Webhooks, webhooks, err)
				}
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				b.ReportMetric(float64(memory.HeapInuse)/(1<<20), "MiB")
			}
		})
	}
}
