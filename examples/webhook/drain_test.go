package main_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNodeDrain drains the node with both Pods of the webhook under load, as kubectl drain does: it cordons the node and evicts
// the Pods. With a PodDisruptionBudget no request fails, because the last Pod is evicted only when another one is ready.
// Without a budget, and with Pods that do not drain, some fail.
func TestNodeDrain(t *testing.T) {
	api := deployed(t)
	nodes := schedulable(t, api)
	if len(nodes) < 2 {
		t.Fatalf("the cluster has %d nodes for Pods; want two, because what is evicted from one needs another: see hack/two-control-planes.yaml", len(nodes))
	}
	from, others := nodes[0], nodes[1:]
	t.Cleanup(func() { cordon(t, api, false, nodes...) })
	for drain, protected := range map[string]bool{"5s": true, "0s": false} {
		t.Run(drain, func(t *testing.T) {
			cordon(t, api, false, from)
			cordon(t, api, true, others...)
			roll(t, api, func(spec *appsv1.DeploymentSpec) {
				*spec.Replicas = 2
				spec.Template.Spec.Containers[0].Args = []string{"--drain", drain}
				spec.Template.Annotations = map[string]string{"example.com/rolled": time.Now().String()}
			})
			cordon(t, api, false, others...)
			if protected {
				protect(t, api)
			}
			refused := 0
			got := underLoad(t, api, func() {
				cordon(t, api, true, from)
				refused = evictAll(t, api, from.Name)
				roll(t, api, func(*appsv1.DeploymentSpec) {})
			})
			switch {
			case protected && (got.failed > 0 || got.sent < 50):
				t.Errorf("%d of %d requests failed; want none, of at least 50", got.failed, got.sent)
			case !protected && got.failed == 0: // each that fails can take as long as its timeout, so few are sent
				t.Errorf("none of %d requests failed; want some", got.sent)
			case !protected && !strings.Contains(got.err.Error(), "failed calling webhook"):
				t.Error(got.err)
			}
			if (refused > 0) != protected {
				t.Errorf("%d evictions were refused, want some: %t", refused, protected)
			}
		})
	}
}

// schedulable returns the nodes that run Pods without tolerations.
func schedulable(t *testing.T, api client.Client) []corev1.Node {
	t.Helper()
	var all corev1.NodeList
	if err := api.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var found []corev1.Node
	for _, node := range all.Items {
		if len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable {
			found = append(found, node)
		}
	}
	return found
}

// cordon says whether nodes get new Pods.
func cordon(t *testing.T, api client.Client, unschedulable bool, nodes ...corev1.Node) {
	t.Helper()
	for _, node := range nodes {
		change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable))
		if err := api.Patch(context.WithoutCancel(t.Context()), &node, change); err != nil {
			t.Fatal(err)
		}
	}
}

// protect creates a PodDisruptionBudget for the Pods of the webhook, and waits until it allows an eviction.
func protect(t *testing.T, api client.Client) {
	t.Helper()
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ingress-guard", Name: "ingress-guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ingress-guard"}}},
	}
	if err := api.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), budget); err != nil {
			t.Error(err)
		}
	})
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		return budget.Status.DisruptionsAllowed == 1, err
	})
	if err != nil {
		t.Fatalf("wait for the PodDisruptionBudget: %v", err)
	}
}

// evictAll evicts the Pods of the webhook on a node until none is left, and returns how many evictions were refused.
func evictAll(t *testing.T, api client.Client, node string) (refused int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := api.List(ctx, &pods, client.InNamespace("ingress-guard")); err != nil {
			return false, err
		}
		left := false
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != node {
				continue
			}
			left = true
			if pod.DeletionTimestamp != nil {
				continue
			}
			err := api.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{})
			if apierrors.IsTooManyRequests(err) {
				refused++
			} else if client.IgnoreNotFound(err) != nil {
				return false, err
			}
		}
		return !left, nil
	})
	if err != nil {
		t.Fatalf("evict the Pods of node %s: %v", node, err)
	}
	return refused
}
