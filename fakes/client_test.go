package fakes_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

func TestVersionsGrowAndStaleUpdatesConflict(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	client := w.Client().CoreV1().Pods("default")
	first, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, first, err)
	changed := first.DeepCopy()
	changed.Labels["app"] = "b"
	second, err := client.Update(t.Context(), changed, metav1.UpdateOptions{})
	must(t, second, err)
	was, err := strconv.Atoi(first.ResourceVersion)
	is := must(t, was, err)
	now, err := strconv.Atoi(second.ResourceVersion)
	if must(t, now, err) <= is || second.UID != first.UID {
		t.Errorf("got version %s after %s, want a greater one, and the same UID", second.ResourceVersion, first.ResourceVersion)
	}
	if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got %v for a stale update, want a conflict", err)
	}
	if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &first.ResourceVersion}}); !apierrors.IsConflict(err) {
		t.Errorf("got %v for a stale delete, want a conflict", err)
	}
	changed.ResourceVersion = ""
	if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Errorf("got %v for an unconditional update", err)
	}
	patch := []byte(`{"metadata":{"resourceVersion":"` + first.ResourceVersion + `"}}`)
	if _, err := client.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got %v for a stale patch, want a conflict", err)
	}
}

func TestRefusals(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	client := w.Client().CoreV1().Pods("default")
	elsewhere := pod("b")
	elsewhere.Namespace = "other"
	for what, check := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"create what exists":         {second(client.Create(t.Context(), pod("a"), metav1.CreateOptions{})), apierrors.IsAlreadyExists},
		"update what does not":       {second(client.Update(t.Context(), pod("b"), metav1.UpdateOptions{})), apierrors.IsNotFound},
		"status of what does not":    {second(client.UpdateStatus(t.Context(), pod("b"), metav1.UpdateOptions{})), apierrors.IsNotFound},
		"delete what does not":       {client.Delete(t.Context(), "b", metav1.DeleteOptions{}), apierrors.IsNotFound},
		"patch what does not":        {second(client.Patch(t.Context(), "b", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})), apierrors.IsNotFound},
		"evict what does not":        {client.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "b"}}), apierrors.IsNotFound},
		"create without a name":      {second(client.Create(t.Context(), &corev1.Pod{}, metav1.CreateOptions{})), apierrors.IsInvalid},
		"create in another's place":  {second(client.Create(t.Context(), elsewhere, metav1.CreateOptions{})), apierrors.IsBadRequest},
		"patch that is no JSON":      {second(client.Patch(t.Context(), "a", types.MergePatchType, []byte("{"), metav1.PatchOptions{})), apierrors.IsBadRequest},
		"patch of an unknown type":   {second(client.Patch(t.Context(), "a", "text/plain", []byte("{}"), metav1.PatchOptions{})), apierrors.IsUnsupportedMediaType},
		"list by a broken selector":  {second(client.List(t.Context(), metav1.ListOptions{LabelSelector: "a b"})), apierrors.IsBadRequest},
		"watch from a strange place": {second(client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "abc"})), apierrors.IsBadRequest},
		"unknown resource":           {second(w.Dynamic().Resource(pods().GroupVersion().WithResource("widgets")).List(t.Context(), metav1.ListOptions{})), apierrors.IsNotFound},
	} {
		t.Run(what, func(t *testing.T) {
			if !check.is(check.err) {
				t.Errorf("got %v (%s)", check.err, apierrors.ReasonForError(check.err))
			}
		})
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	client, all := w.Client().CoreV1().Pods("default"), []string{metav1.DryRunAll}
	before, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, before, err)
	made, err := client.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "gen-"}}, metav1.CreateOptions{DryRun: all})
	if must(t, made, err); made.Name == "" || made.UID == "" {
		t.Errorf("got %v, want what would be stored", made.ObjectMeta)
	}
	changed := pod("a")
	changed.Labels = nil
	must(t, 0, second(client.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: all})))
	must(t, 0, second(client.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{DryRun: all})))
	must(t, 0, second(client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{DryRun: all})))
	must(t, 0, client.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: all}))
	must(t, 0, client.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{}))
	after, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, after, err)
	if after.ResourceVersion != before.ResourceVersion || len(after.Items) != 1 || after.Items[0].Labels["app"] != "a" {
		t.Errorf("got %v, want what was there before", after.Items)
	}
	if writes := w.Calls().Writes(); len(writes) != 0 {
		t.Errorf("got writes\n%s", writes)
	}
}

func TestPatches(t *testing.T) {
	for _, patch := range []struct {
		typ  types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/app","value":"new"}]`},
		{types.MergePatchType, `{"metadata":{"labels":{"app":"new"}}}`},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"app":"new"}},"spec":{"containers":[{"name":"b","image":"i"}]}}`},
		{types.ApplyPatchType, "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {app: new}}\nspec: {containers: [{name: b, image: i}]}"},
	} {
		t.Run(string(patch.typ), func(t *testing.T) {
			object := pod("a")
			object.Spec.Containers = []corev1.Container{{Name: "a"}}
			w, options := fakes.NewWorld(t, fakes.WithObjects(object)), metav1.PatchOptions{FieldManager: "test"}
			if force := true; patch.typ == types.ApplyPatchType {
				options.Force = &force
			}
			got, err := w.Client().CoreV1().Pods("default").Patch(t.Context(), "a", patch.typ, []byte(patch.body), options)
			if err != nil || got.Labels["app"] != "new" {
				t.Errorf("%s: got %v, %v, want another label", patch.typ, got, err)
				return
			}
			if merged := patch.typ == types.StrategicMergePatchType || patch.typ == types.ApplyPatchType; merged && len(got.Spec.Containers) != 2 {
				t.Errorf("%s: got containers %v, want them merged by name", patch.typ, got.Spec.Containers)
			}
			cached, err := w.Informers().Core().V1().Pods().Lister().Pods("default").Get("a")
			if must(t, cached, err).Labels["app"] != "new" {
				t.Errorf("%s: the cache has %v", patch.typ, cached.Labels)
			}
		})
	}
	w := fakes.NewWorld(t)
	made, err := w.Client().CoreV1().ConfigMaps("default").Apply(t.Context(), applycorev1.ConfigMap("c", "default").WithData(map[string]string{"a": "b"}), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil || made.Data["a"] != "b" || made.UID == "" {
		t.Errorf("got %v, %v, want that apply creates", made, err)
	}
}

func TestSubresources(t *testing.T) {
	replicas := int32(1)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}}
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), deployment, account))
	client, ctx := w.Client(), t.Context()

	changed := pod("a")
	changed.Labels, changed.Status.Phase = nil, corev1.PodRunning
	got, err := client.CoreV1().Pods("default").UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if must(t, got, err).Labels["app"] != "a" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("got %v, want the status alone changed", got)
	}
	got, err = client.CoreV1().Pods("default").Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":null},"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	if must(t, got, err).Labels["app"] != "a" || got.Status.Phase != corev1.PodFailed {
		t.Errorf("got %v, want the status alone patched", got)
	}
	scale, err := client.AppsV1().Deployments("default").UpdateScale(ctx, "d", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}, metav1.UpdateOptions{})
	if must(t, scale, err).Spec.Replicas != 5 || scale.Name != "d" {
		t.Errorf("got %v, want 5 replicas", scale)
	}
	_, err = client.AppsV1().Deployments("default").Patch(ctx, "d", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`), metav1.PatchOptions{}, "scale")
	must(t, 0, err)
	scale, err = client.AppsV1().Deployments("default").GetScale(ctx, "d", metav1.GetOptions{})
	if must(t, scale, err).Spec.Replicas != 6 {
		t.Errorf("got %v, want 6 replicas", scale)
	}
	must(t, 0, client.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Name: "n"}}, metav1.CreateOptions{}))
	must(t, 0, client.CoreV1().Pods("default").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	calls := w.Calls()
	if bound, ok := calls[len(calls)-2].Object.(*corev1.Binding); !ok || bound.Target.Name != "n" || !calls.Has("create", "pods/eviction") {
		t.Errorf("got %v, want binding and eviction recorded with their bodies", calls)
	}
	before := len(calls.Writes())
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "s", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"me"}}}, metav1.CreateOptions{})
	if must(t, token, err).Spec.Audiences[0] != "me" || len(w.Calls().Writes()) != before {
		t.Errorf("got %v, want it echoed, and no write", token)
	}
}

func TestSelectors(t *testing.T) {
	running := pod("b")
	running.Status.Phase = corev1.PodRunning
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.PodList{Items: []corev1.Pod{*pod("a"), *running}}))
	client := w.Client().CoreV1().Pods("")
	for options, want := range map[metav1.ListOptions]string{
		{}:                                      "a b",
		{LabelSelector: "app in (a)"}:           "a",
		{LabelSelector: "app!=a"}:               "b",
		{FieldSelector: "metadata.name=b"}:      "b",
		{FieldSelector: "metadata.namespace=x"}: "",
		{FieldSelector: "status.phase=Running"}: "b",
	} {
		t.Run(options.LabelSelector+options.FieldSelector, func(t *testing.T) {
			list, err := client.List(t.Context(), options)
			must(t, list, err)
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%v: got %q, want %q", options, got, want)
			}
		})
	}
	if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"}); err == nil {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if must(t, list, err); len(list.Items) != 1 {
			t.Errorf("got %v, want one left", list.Items)
		}
	} else {
		t.Error(err)
	}
}

// Custom resources without a Go type are unstructured, of any client.
func TestCustomResources(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Policy"}
	gvr := gvk.GroupVersion().WithResource("policys") // an unusual plural
	w := fakes.NewWorld(t, fakes.WithMappings(meta.RESTMapping{Resource: gvr, GroupVersionKind: gvk, Scope: meta.RESTScopeRoot}))
	object := &unstructuredObject{Object: map[string]any{"spec": map[string]any{"a": "b"}}}
	object.SetGroupVersionKind(gvk)
	object.SetName("p")
	w.Put(object)
	list, err := w.Dynamic().Resource(gvr).List(t.Context(), metav1.ListOptions{})
	if must(t, list, err); len(list.Items) != 1 || list.Items[0].GroupVersionKind() != gvk || list.Items[0].GetUID() == "" {
		t.Errorf("got %v, want the object", list.Items)
	}
	if object.GetUID() != "" {
		t.Error("the test's own object was written to")
	}
	patched, err := w.Dynamic().Resource(gvr).Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"a":"c"}}`), metav1.PatchOptions{})
	if must(t, patched, err); patched.Object["spec"].(map[string]any)["a"] != "c" { //nolint:forcetypeassert // of the test
		t.Errorf("got %v", patched)
	}
	mapping, err := w.RESTMapper().RESTMapping(gvk.GroupKind())
	if must(t, mapping, err); mapping.Resource != gvr || mapping.Scope != meta.RESTScopeRoot {
		t.Errorf("got %v, want what was given", mapping)
	}
	informer, err := w.Informers().ForResource(gvr)
	must(t, informer, err)
	cached := object.DeepCopy()
	cached.SetName("cached")
	w.PutCache(cached)
	if found, err := informer.Lister().List(labels.Everything()); err != nil || len(found) != 2 {
		t.Errorf("got %v, %v, want what is stored and what is in the cache alone", found, err)
	}
	if _, err := w.Informers().ForResource(gvk.GroupVersion().WithResource("widgets")); err == nil {
		t.Error("there is an informer of an unknown resource")
	}
	// An unstructured object of a known kind is stored like a typed object.
	w.Put(toUnstructured(t, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "u", Namespace: "default"}}))
	if _, err := w.Informers().Core().V1().Pods().Lister().Pods("default").Get("u"); err != nil {
		t.Error(err)
	}
}

// Any generated client works: one that speaks protobuf, one of metadata, discovery.
func TestOtherClients(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	config := w.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	must(t, client, err)
	made, err := client.CoreV1().Pods("default").Create(t.Context(), pod("b"), metav1.CreateOptions{})
	if must(t, made, err); made.Labels["app"] != "b" {
		t.Errorf("got %v, want the pod sent as protobuf", made)
	}
	metas, err := metadata.NewForConfig(w.RESTConfig())
	must(t, metas, err)
	list, err := metas.Resource(pods()).List(t.Context(), metav1.ListOptions{})
	if must(t, list, err); len(list.Items) != 2 || list.Items[0].Labels["app"] != "a" {
		t.Errorf("got %v, want the metadata of both", list.Items)
	}
	resources, err := discovery.ServerPreferredResources(client.Discovery())
	if must(t, resources, err); len(resources) < 20 {
		t.Errorf("got %d lists of resources, want the lists of Kubernetes", len(resources))
	}
	version, err := client.Discovery().ServerVersion()
	if must(t, version, err); version.Major != "1" {
		t.Errorf("got version %v", version)
	}
}

func second[V any](_ V, err error) error { return err }
