package plugin_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"

	"example.com/owner"
	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

func namespace(name, owner string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if owner != "" {
		ns.Annotations = map[string]string{plugin.Label: owner}
	}
	return ns
}

func pod(namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace}}
}

// The test that README.md shows.
func TestOwner(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("owned", "blue"), namespace("orphan", "")))
	h := harness.New(t, harness.FromRegister(plugin.PluginName, plugin.Register), harness.WithWorld(w))

	result := h.Do(framework.Create(pod("owned"))).MustAllow(t)
	if got := harness.Mutated[*corev1.Pod](t, result).Labels[plugin.Label]; got != "blue" {
		t.Errorf("owner is %q, want blue", got)
	}
	h.Do(framework.Create(pod("orphan"))).MustReject(t, metav1.StatusReasonForbidden, "has no owner")
}

func TestOwnerIsKept(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("owned", "blue")))
	h := harness.New(t, harness.FromRegister(plugin.PluginName, plugin.Register), harness.WithWorld(w))
	own := pod("owned")
	own.Labels = map[string]string{plugin.Label: "red"}
	if changes := h.Do(framework.Create(own)).MustAllow(t).Changes(); len(changes) > 0 {
		t.Errorf("changed %q, want nothing", changes)
	}
}

// If a namespace is not in the cache yet, the plugin asks the API server, and makes no other
// call.
func TestYoungNamespace(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("young", "blue")), fakes.StaleCache())
	h := harness.New(t, harness.FromRegister(plugin.PluginName, plugin.Register), harness.WithWorld(w))
	result := h.Do(framework.Create(pod("young"))).MustAllow(t)
	if !slices.Contains(result.Changes(), "metadata.labels["+plugin.Label+"]") || len(result.Calls) != 1 || !result.Calls.Has("get", "namespaces") {
		t.Errorf("changed %q by these calls, want the label by one get:\n%s", result.Changes(), result.Calls)
	}
}

func TestDefaultOwner(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("orphan", "")))
	h := harness.New(t, harness.FromRegister(plugin.PluginName, plugin.Register), harness.WithWorld(w), harness.WithConfig("defaultOwner: ops"))
	result := h.Do(framework.Create(pod("orphan"))).MustAllow(t)
	if got := harness.Mutated[*corev1.Pod](t, result).Labels[plugin.Label]; got != "ops" {
		t.Errorf("owner is %q, want ops", got)
	}
}

// In a chain, NamespaceLifecycle refuses pods of a namespace that does not exist, before the plugin looks at it.
func TestChain(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("owned", "blue")),
		fakes.WithAuthorizer(fakes.Deny().Unless("joe", "use", "teams.example.com", "blue"))) // for plugins that ask
	plugins := []harness.Source{harness.FromRegister(lifecycle.PluginName, lifecycle.Register), harness.FromRegister(plugin.PluginName, plugin.Register)}
	h := harness.NewChain(t, harness.Chain{Plugins: plugins}, harness.WithWorld(w))
	h.Do(framework.Create(pod("owned"))).MustAllow(t)
	h.Do(framework.Create(pod("absent"))).MustReject(t, metav1.StatusReasonNotFound, "absent")
}
