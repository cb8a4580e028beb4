package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// nameLabel is the label of each namespace with its name.
const nameLabel = "kubernetes.io/metadata.name"

// ordinary is a namespace for requests that are about no particular namespace. It has no labels of its own.
const ordinary = "any-namespace"

// object is an object of a file or of the cluster.
type object struct {
	unstructured.Unstructured
	manifest *shipped.Manifest // nil for an object of the cluster
}

func (o *object) String() string { return o.GetKind() + "/" + o.GetName() }

func (o *object) list(fields ...string) []any {
	items, _, _ := unstructured.NestedSlice(o.Object, fields...)
	return items
}

// as returns an object as a Go type. What does not fit the type is left out.
func as[T any](o *object) (typed T) {
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed)
	return typed
}

// world is everything that rules know.
type world struct {
	*kinds.Catalogue // the resources that the API server serves
	// complete is true if a resource that is not in the Catalogue does not exist.
	complete bool

	ctx     context.Context      //nolint:containedctx // it lives as long as the call of Judge
	objects map[string]*object   // by kindKey, namespace and name
	byKind  map[string][]*object // by kindKey
	// onCluster is true if there is a cluster. Otherwise an object that is in no file can exist.
	onCluster bool
	// hasFiles is true if only objects of files are judged.
	hasFiles bool
	minor    int

	// given are the configurations, policies and bindings. Those that cannot be read are left out.
	given     []*object
	admission *reach.Admission
	broken    []reach.ExpressionError
	webhooks  []*webhook
	policies  []*policy
	bindings  []*binding
	backends  map[string]*backend
	decided   map[string]*decisions
	// usualFields are read when they are needed.
	usualFields map[string]map[string]any
}

// kindKey identifies a kind in a world: "Deployment.apps", "Service".
func kindKey(kind schema.GroupVersionKind) string { return kind.GroupKind().String() }

func (w *world) add(o *object) {
	key := kindKey(o.GroupVersionKind())
	full := key + " " + o.GetNamespace() + "/" + o.GetName()
	if known := w.objects[full]; known != nil {
		w.byKind[key] = slices.DeleteFunc(w.byKind[key], func(other *object) bool { return other == known })
	}
	w.objects[full] = o
	w.byKind[key] = append(w.byKind[key], o)
}

// get returns an object, or nil. If it is not known whether there is one, unknown says why. An object of a file without a namespace is in
// the one in which the file is installed: it is taken for that of the reference.
func (w *world) get(key, namespace, name string) (found *object, unknown string) {
	if o := cmp.Or(w.objects[key+" "+namespace+"/"+name], w.objects[key+" /"+name]); o != nil || w.onCluster {
		return o, ""
	}
	kind, _, _ := strings.Cut(key, ".")
	in := ""
	if namespace != "" {
		in = " in namespace " + namespace
	}
	return nil, fmt.Sprintf("%s %s%s is not in the files", kind, name, in)
}

// list returns the objects of a kind in a namespace, or in all namespaces for "". In files, there can be more.
func (w *world) list(key, namespace string) (found []*object) {
	return slices.DeleteFunc(slices.Clone(w.byKind[key]), func(o *object) bool { return namespace != "" && cmp.Or(o.GetNamespace(), namespace) != namespace })
}

// assumed reports whether the labels of a namespace are not known, but assumed to be those that Kubernetes sets.
func (w *world) assumed(namespace string) bool {
	return w.objects["Namespace /"+namespace] == nil && namespace != ordinary
}

// Namespace implements reach.Cluster. A namespace that is not known has the label that the API server sets.
func (w *world) Namespace(_ context.Context, name string) (map[string]any, error) {
	space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if found := w.objects["Namespace /"+name]; found != nil {
		space = found.DeepCopy()
	}
	with := map[string]string{}
	maps.Copy(with, space.GetLabels())
	with[nameLabel] = name
	space.SetLabels(with)
	return space.Object, nil
}

// Params implements reach.Cluster.
func (w *world) Params(_ context.Context, kind schema.GroupVersionKind) (reach.Params, error) {
	known := w.Of(kind)
	if known == nil {
		if !w.complete && !kinds.IsBuiltInGroup(kind.Group) {
			return reach.Params{}, fmt.Errorf("the CustomResourceDefinition of %s %s is not in the files", kind.GroupVersion(), kind.Kind)
		}
		return reach.Params{}, nil
	}
	if !w.onCluster {
		return reach.Params{}, fmt.Errorf("the files need not have every %s", kind.Kind)
	}
	params := reach.Params{Served: true, Namespaced: known.Namespaced}
	for _, o := range w.list(kindKey(kind), "") {
		params.Objects = append(params.Objects, o.Object)
	}
	return params, nil
}

// Convert implements reach.Cluster. The objects of requests are made up, so only their version changes.
func (w *world) Convert(_ context.Context, fields map[string]any, kind schema.GroupVersionKind) (map[string]any, error) {
	converted := runtime.DeepCopyJSON(fields)
	converted["apiVersion"], converted["kind"] = kind.GroupVersion().String(), kind.Kind
	return converted, nil
}

// backend is the Service of webhooks, and what is behind it.
type backend struct {
	namespace, name string
	service         *object
	spec            corev1.ServiceSpec
	// unknown says why it is not known whether the Service exists.
	unknown string
	// workloads have Pods that the Service selects. Pods are in the cluster.
	workloads []workload
	pods      []*object
	// labels are the labels of a Pod. Nil if they are not known.
	labels map[string]string
}

func (b *backend) String() string { return b.namespace + "/" + b.name }

// workload is a Deployment, StatefulSet or DaemonSet. They have the fields that matter here in the same places.
type workload struct {
	*object
	spec appsv1.DeploymentSpec
}

// replicas returns the number of Pods: for a DaemonSet, the one of a node.
func (w workload) replicas() int32 { return ptr.Deref(w.spec.Replicas, 1) }

// backendOf returns the backend of a Service.
func (w *world) backendOf(namespace, name string) *backend {
	b := &backend{namespace: namespace, name: name}
	if known := w.backends[b.String()]; known != nil {
		return known
	}
	w.backends[b.String()] = b
	if b.service, b.unknown = w.get("Service", namespace, name); b.service == nil {
		return b
	}
	b.spec = as[corev1.Service](b.service).Spec
	if len(b.spec.Selector) == 0 {
		return b
	}
	b.labels = b.spec.Selector
	selector := labels.SelectorFromSet(b.spec.Selector)
	for _, pod := range w.list("Pod", namespace) {
		if selector.Matches(labels.Set(pod.GetLabels())) {
			b.pods, b.labels = append(b.pods, pod), pod.GetLabels()
		}
	}
	for _, kind := range []string{"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"} {
		for _, o := range w.list(kind, namespace) {
			spec := as[appsv1.Deployment](o).Spec
			if selector.Matches(labels.Set(spec.Template.Labels)) {
				b.workloads, b.labels = append(b.workloads, workload{o, spec}), spec.Template.Labels
			}
		}
	}
	return b
}

// selector returns the requirements of a selector.
func requirements(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	if selector == nil {
		return nil
	}
	var all []metav1.LabelSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		all = append(all, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]}})
	}
	return append(all, selector.MatchExpressions...)
}

// optsIn reports whether a requirement matches only labels that an object has.
func optsIn(r metav1.LabelSelectorRequirement) bool {
	return r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists
}
