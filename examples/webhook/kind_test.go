package main_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/internal/relay/image"

	"example.com/ingress-guard/certs"
)

// deploy brings the webhook onto the kind cluster that KUBECONFIG (or
// ADMISSIONTEST_KIND_KUBECONFIG) leads to, with the manifests of config/, and takes
// it off again when the test ends.
func deploy(t *testing.T, made certs.Certs) *rest.Config {
	t.Helper()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = os.Getenv("ADMISSIONTEST_KIND_KUBECONFIG")
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("find the kind cluster: it has %d nodes: %v", len(nodes.Items), err)
	}
	into, err := kind.Of(t.Context(), nodes.Items[0].Spec.ProviderID, config)
	if err != nil {
		t.Fatal(err)
	}
	tag := loadImage(t, into)

	objects := manifests(t, filepath.Join("config", "deploy.yaml"))
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeTLS),
		"metadata":   map[string]any{"namespace": "ingress-guard", "name": "ingress-guard-tls"},
		"stringData": map[string]any{"tls.crt": string(made.Cert), "tls.key": string(made.Key)},
	}}
	t.Cleanup(func() { remove(t, api, objects[0]) })
	for _, object := range append([]*unstructured.Unstructured{objects[0], secret}, objects[1:]...) {
		if object.GetKind() == "Deployment" {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = tag
			if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				t.Fatal(err)
			}
		}
		if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("admission-test"), client.ForceOwnership); err != nil {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	return config
}

// loadImage builds the image of the webhook and loads it into the cluster's nodes.
func loadImage(t *testing.T, into *kind.Cluster) string {
	t.Helper()
	built, err := image.Build(t.Context(), image.Options{Program: ".", Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := image.Tag(built)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := image.WriteTarball(built, tag, archive); err != nil {
		t.Fatal(err)
	}
	if err := into.LoadImage(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	return tag
}

// manifests reads a file of manifests. The first is the Namespace.
func manifests(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		out = append(out, object)
	}
}

// remove deletes the namespace and waits until it is gone.
func remove(t *testing.T, api client.Client, namespace *unstructured.Unstructured) {
	ctx := context.WithoutCancel(t.Context())
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.GetName()}}
	err := api.Delete(ctx, object)
	if err == nil {
		err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := api.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	if client.IgnoreNotFound(err) != nil {
		t.Errorf("remove namespace %s: %v", object.Name, err)
	}
}
