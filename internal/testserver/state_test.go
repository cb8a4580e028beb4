package testserver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// restore removes what was created, also with finalizers, brings back what was deleted, and undoes
// changes.
func TestRestore(t *testing.T) {
	server, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	stored := storageOf(server)
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/held"}}}
	}
	for _, name := range []string{"deleted", "changed"} {
		created := object(name)
		created.Finalizers = nil
		if _, err := maps.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := stored.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before["/registry/configmaps/default/changed"] == "" || before["/registry/configmaps/default/created"] != "" {
		t.Error("the state is not what is stored")
	}
	if _, err := maps.Create(t.Context(), object("created"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	patched, err := maps.Patch(t.Context(), "changed", types.MergePatchType, []byte(`{"data": {"a": "b"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: patched.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	changed, err := stored.restore(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	// A watch that is interrupted continues behind the last version that it has received.
	versions := map[string]bool{}
	for range 3 {
		object, ok := (<-watched.ResultChan()).Object.(*corev1.ConfigMap)
		if !ok || versions[object.ResourceVersion] {
			t.Errorf("the watch received %v; want three changes with different versions", object)
			break
		}
		versions[object.ResourceVersion] = true
	}
	for _, name := range []string{"created", "deleted", "changed"} {
		if !slices.Contains(changed, "/registry/configmaps/default/"+name) {
			t.Errorf("restore changed %v; want %s among them", changed, name)
		}
	}
	if _, err := maps.Get(t.Context(), "created", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the new object: %v; want that it is not found", err)
	}
	if _, err := maps.Get(t.Context(), "deleted", metav1.GetOptions{}); err != nil {
		t.Errorf("the deleted object: %v", err)
	}
	got, err := maps.Get(t.Context(), "changed", metav1.GetOptions{})
	if err != nil || len(got.Data) > 0 {
		t.Errorf("the changed object has the data %v; %v", got.Data, err)
	}
}
