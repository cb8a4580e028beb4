package main_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admissiontest/admissiontest/framework/kind"

	"example.com/ingress-guard/certs"
)

// deploy deploys the webhook to the kind cluster of KUBECONFIG (or
// ADMISSIONTEST_KIND_KUBECONFIG), with the manifests of config/, and removes it when the test
// ends.
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

// install installs the configurations of config/ for the Service, waits until its Pod is ready, and removes them when the test ends.
func install(t *testing.T, config *rest.Config, ca []byte) {
	t.Helper()
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		deployment := &appsv1.Deployment{}
		err := api.Get(ctx, client.ObjectKey{Namespace: "ingress-guard", Name: "ingress-guard"}, deployment)
		return deployment.Status.AvailableReplicas > 0, err
	})
	if err != nil {
		t.Fatalf("wait for a Pod of the Deployment: %v", err)
	}
	for _, object := range manifests(t, filepath.Join("config", "webhook.yaml")) {
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, each := range webhooks {
			if err := unstructured.SetNestedField(each.(map[string]any), base64.StdEncoding.EncodeToString(ca), "clientConfig", "caBundle"); err != nil {
				t.Fatal(err)
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(api.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Errorf("remove %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		})
		if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("admission-test"), client.ForceOwnership); err != nil {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// loadImage compiles the webhook, makes an image of the binary, and loads it into the nodes of
// the cluster. It returns the reference of the image.
func loadImage(t *testing.T, into *kind.Cluster) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, "ingress-guard"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the webhook: %v\n%s", err, output)
	}
	binary, err := os.ReadFile(filepath.Join(dir, "ingress-guard"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := imageOf(binary)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewTag("localhost/ingress-guard:" + digest.Hex[:12])
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "image.tar")
	if err := tarball.WriteToFile(archive, reference, image); err != nil {
		t.Fatal(err)
	}
	if err := into.LoadImage(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	return reference.String()
}

// imageOf returns an image with one static binary, which it runs.
func imageOf(binary []byte) (v1.Image, error) {
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	err := writer.WriteHeader(&tar.Header{Name: "ingress-guard", Mode: 0o555, Size: int64(len(binary))})
	if err == nil {
		_, err = writer.Write(binary)
	}
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: []string{"/ingress-guard"}, User: "65532:65532", WorkingDir: "/"}
	return mutate.ConfigFile(image, config)
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
