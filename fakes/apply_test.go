package fakes_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

// conflictWith fails the test unless the error is a conflict with a manager about a field.
func conflictWith(t *testing.T, err error, manager, field string) {
	t.Helper()
	var status metav1.Status
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	if !apierrors.IsConflict(err) || status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != field ||
		status.Details.Causes[0].Type != metav1.CauseTypeFieldManagerConflict || !strings.Contains(err.Error(), `"`+manager+`"`) {
		t.Errorf("got %v, want a conflict with %s about %s", err, manager, field)
	}
}

// Fields have owners. An apply of another value is a conflict, unless it is forced. A field is
// removed when its last owner no longer applies it.
func TestApply(t *testing.T) {
	w := fakes.NewWorld(t)
	client, ctx := w.Client().CoreV1().ConfigMaps("default"), t.Context()
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return client.Apply(ctx, applycorev1.ConfigMap("c", "default").WithData(data), metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	made, err := apply("one", false, map[string]string{"a": "1", "b": "1"})
	must(t, made, err)
	if owners := made.ManagedFields; len(owners) != 1 || owners[0].Manager != "one" || owners[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("got managed fields %v, want one owner's", owners)
	}
	conflictWith(t, second(apply("two", false, map[string]string{"a": "2"})), "one", ".data.a")
	if same, err := apply("one", false, map[string]string{"a": "1", "b": "1"}); err != nil || same.ResourceVersion != made.ResourceVersion {
		t.Errorf("got %v, %v for an apply that changes nothing, want version %s", same, err, made.ResourceVersion)
	}
	forced, err := apply("two", true, map[string]string{"a": "2"})
	if must(t, forced, err).Data["a"] != "2" || forced.Data["b"] != "1" {
		t.Errorf("got %v, want a of two and b of one", forced.Data)
	}
	less, err := apply("one", false, map[string]string{})
	if must(t, less, err); len(less.Data) != 1 || less.Data["a"] != "2" {
		t.Errorf("got %v, want b removed", less.Data)
	}
	less.Data["a"] = "3"
	must(t, 0, second(client.Update(ctx, less, metav1.UpdateOptions{FieldManager: "three"})))
	conflictWith(t, second(apply("two", false, map[string]string{"a": "2"})), "three", ".data.a")
	config := w.RESTConfig()
	config.UserAgent = "four/v1"
	other, err := kubernetes.NewForConfig(config)
	must(t, other, err)
	must(t, 0, second(other.CoreV1().ConfigMaps("default").Patch(ctx, "c", types.MergePatchType, []byte(`{"data":{"a":"4"}}`), metav1.PatchOptions{})))
	conflictWith(t, second(apply("two", false, map[string]string{"a": "2"})), "four", ".data.a")
}

// An object that was not applied before has an owner too.
func TestFirstApply(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Data: map[string]string{"a": "1"}}))
	client := w.Client().CoreV1().ConfigMaps("default")
	wanted := applycorev1.ConfigMap("c", "default").WithData(map[string]string{"a": "2"})
	conflictWith(t, second(client.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: "one"})), "before-first-apply", ".data.a")
	if got := w.Objects()[0].(*corev1.ConfigMap); got.Data["a"] != "1" || got.ManagedFields != nil {
		t.Errorf("got %v after a conflict, want the object as it was", got)
	}
	got, err := client.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: "one", Force: true, DryRun: []string{metav1.DryRunAll}})
	if must(t, got, err).Data["a"] != "2" || w.Objects()[0].(*corev1.ConfigMap).Data["a"] != "1" {
		t.Errorf("got %v in a dry run, want the change, and that it is not stored", got.Data)
	}
}

// Lists of Kubernetes' own types are merged by their keys. An apply of the status keeps the spec.
func TestApplyOfListsAndStatus(t *testing.T) {
	w := fakes.NewWorld(t)
	client := w.Client().CoreV1().Pods("default")
	for _, name := range []string{"a", "b"} {
		wanted := applycorev1.Pod("p", "default").WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName(name).WithImage("i")))
		must(t, 0, second(client.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: "of-" + name})))
	}
	status := applycorev1.Pod("p", "default").WithSpec(applycorev1.PodSpec().WithNodeName("n")).WithStatus(applycorev1.PodStatus().WithPhase(corev1.PodRunning))
	got, err := client.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "kubelet"})
	if must(t, got, err); len(got.Spec.Containers) != 2 || got.Spec.NodeName != "" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("got %v, want two containers, no node and phase Running", got)
	}
	for _, owner := range got.ManagedFields {
		if owned := owner.FieldsV1.String(); owner.Manager == "kubelet" && (owner.Subresource != "status" || strings.Contains(owned, "f:spec") || !strings.Contains(owned, "f:phase")) {
			t.Errorf("kubelet owns %s of subresource %q, want only the phase, of status", owned, owner.Subresource)
		}
	}
	got.Status.Phase = corev1.PodFailed
	must(t, 0, second(client.UpdateStatus(t.Context(), got, metav1.UpdateOptions{FieldManager: "other"})))
	conflictWith(t, second(client.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "kubelet"})), "other", ".status.phase")
}

// Custom resources have owners too.
func TestApplyOfCustomResource(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Policy"}
	gvr := gvk.GroupVersion().WithResource("policies")
	w := fakes.NewWorld(t, fakes.WithMappings(meta.RESTMapping{Resource: gvr, GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}))
	client := w.Dynamic().Resource(gvr).Namespace("default")
	apply := func(manager, value string) error {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": value}}}
		object.SetGroupVersionKind(gvk)
		object.SetName("p")
		return second(client.Apply(t.Context(), "p", object, metav1.ApplyOptions{FieldManager: manager}))
	}
	must(t, 0, apply("one", "1"))
	must(t, 0, apply("two", "1"))
	conflictWith(t, apply("two", "2"), "one", ".spec.a")
}

func TestRefusedApplies(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	client, force := w.Client().CoreV1().Pods("default"), true
	patch := func(name string, typ types.PatchType, body string, options metav1.PatchOptions, subresources ...string) error {
		return second(client.Patch(t.Context(), name, typ, []byte(body), options, subresources...))
	}
	mine := metav1.PatchOptions{FieldManager: "me"}
	for what, check := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"no manager":             {patch("a", types.ApplyPatchType, "{apiVersion: v1, kind: Pod}", metav1.PatchOptions{}), apierrors.IsInvalid},
		"forced merge":           {patch("a", types.MergePatchType, "{}", metav1.PatchOptions{Force: &force}), apierrors.IsInvalid},
		"no YAML":                {patch("a", types.ApplyPatchType, "{", mine), apierrors.IsBadRequest},
		"no kind":                {patch("a", types.ApplyPatchType, "{}", mine), apierrors.IsBadRequest},
		"another kind":           {patch("a", types.ApplyPatchType, "{apiVersion: v1, kind: Node}", mine), apierrors.IsBadRequest},
		"another name":           {patch("a", types.ApplyPatchType, "{apiVersion: v1, kind: Pod, metadata: {name: b}}", mine), apierrors.IsBadRequest},
		"unknown field":          {patch("a", types.ApplyPatchType, "{apiVersion: v1, kind: Pod, spec: {node: n}}", mine), isServerError},
		"managed fields":         {patch("a", types.ApplyPatchType, "{apiVersion: v1, kind: Pod, metadata: {managedFields: [{manager: x}]}}", mine), apierrors.IsBadRequest},
		"status of what is gone": {patch("b", types.ApplyPatchType, "{apiVersion: v1, kind: Pod}", mine, "status"), apierrors.IsNotFound},
		"stale version":          {patch("a", types.ApplyPatchType, "{apiVersion: v1, kind: Pod, metadata: {resourceVersion: '1'}}", mine), apierrors.IsConflict},
	} {
		t.Run(what, func(t *testing.T) {
			if !check.is(check.err) {
				t.Errorf("got %v (%s)", check.err, apierrors.ReasonForError(check.err))
			}
		})
	}
}

func isServerError(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code == 500
}
