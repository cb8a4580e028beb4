package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// A user who may not list everything leaves a namespace to the namespace controller, and
// removes only the finalizers of scenarios.
func heldNamespace(t *testing.T, admin *rest.Config) {
	config, client := operator(t, admin, transportRole)
	labels := map[string]string{apiserver.RunLabel: "held", apiserver.ScenarioLabel: "at-held-001"}
	for _, finalizers := range [][]corev1.FinalizerName{{"kubernetes", "example.com/hold"}, {"example.com/hold"}} {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "at-held-", Labels: labels}, Spec: corev1.NamespaceSpec{Finalizers: finalizers}}
		made, err := client.CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
		if _, err := client.CoreV1().ConfigMaps(made.Name).Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := apiserver.Cleanup(t.Context(), config, apiserver.CleanupOptions{Run: "held"})
	if err != nil || len(removed) != 2 {
		t.Errorf("Cleanup = %v, %v; want both namespaces", removed, err)
	}
	wantNoOrphans(t, client)
	wantNothingLeft(t, admin)
}

func wantNoOrphans(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	maps, err := client.CoreV1().ConfigMaps("").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range maps.Items {
		if one.Name == "held" {
			t.Errorf("orphaned: ConfigMap %s in namespace %s", one.Name, one.Namespace)
		}
	}
}
