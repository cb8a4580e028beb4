package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/ingress-guard/certs"
)

// deployed deploys and installs the webhooks on a kind cluster, and returns a client of it.
func deployed(t *testing.T) client.Client {
	t.Helper()
	if os.Getenv("ADMISSIONTEST_KIND") == "" {
		t.Skip("ADMISSIONTEST_KIND is not set: it needs a kind cluster: make test-kind")
	}
	made, err := certs.Make()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(deploy(t, made))
	config.QPS = -1
	install(t, config, made.CA)
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// load is what requests under load got.
type load struct {
	sent, failed int
	err          error // the last one
}

// underLoad creates an Ingress all the time, as dry runs, while a function runs.
func underLoad(t *testing.T, api client.Client, during func()) load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all load
	var mu sync.Mutex
	var workers sync.WaitGroup
	subject := manifests(t, filepath.Join("testdata", "shop.yaml"))[0]
	rules := []any{map[string]any{"host": "shop.example.com"}} // valid without the webhooks too
	if err := unstructured.SetNestedSlice(subject.Object, rules, "spec", "rules"); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		workers.Go(func() {
			for ctx.Err() == nil {
				object := subject.DeepCopy()
				object.SetNamespace("default")
				err := api.Create(context.WithoutCancel(ctx), object, client.DryRunAll)
				mu.Lock()
				all.sent++
				if err != nil {
					all.failed++
					all.err = err
				}
				mu.Unlock()
			}
		})
	}
	during()
	cancel()
	workers.Wait()
	t.Logf("%d requests, %d failed; the last error: %v", all.sent, all.failed, all.err)
	return all
}

// roll changes the Deployment and waits until no Pod of the old one is left.
func roll(t *testing.T, api client.Client, change func(*appsv1.DeploymentSpec)) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: "ingress-guard", Name: "ingress-guard"}
	if err := api.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	before := client.MergeFrom(deployment.DeepCopy())
	change(&deployment.Spec)
	if err := api.Patch(t.Context(), deployment, before); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := api.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
			return false, err
		}
		err := api.Get(ctx, key, deployment)
		status, want := deployment.Status, *deployment.Spec.Replicas
		return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want && status.AvailableReplicas == want && len(pods.Items) == int(want), err
	})
	if err != nil {
		t.Fatalf("wait for the rolling update: %v", err)
	}
}

// TestRollingUpdate updates the Deployment under load: no request fails, because the old Pod serves until its connections are
// closed and kube-proxy knows the new one. Without that, some fail.
func TestRollingUpdate(t *testing.T) {
	api := deployed(t)
	for drain, loses := range map[string]bool{"5s": false, "0s": true} {
		t.Run(drain, func(t *testing.T) {
			roll(t, api, func(spec *appsv1.DeploymentSpec) {
				spec.Template.Spec.Containers[0].Args = []string{"--drain", drain}
			})
			got := underLoad(t, api, func() {
				roll(t, api, func(spec *appsv1.DeploymentSpec) {
					spec.Template.Annotations = map[string]string{"example.com/rolled": time.Now().String()}
				})
			})
			if got.sent < 50 || got.failed > 0 != loses || loses && !strings.Contains(got.err.Error(), "failed calling webhook") {
				t.Errorf("%d of %d requests failed, want some: %t", got.failed, got.sent, loses)
			}
		})
	}
}
