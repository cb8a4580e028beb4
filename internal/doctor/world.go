package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

func (o *object) text(fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

// world is everything that rules know.
type world struct {
	*kinds.Catalogue // the resources that the API server serves
	// complete is true if a resource that is not in the Catalogue does not exist.
	complete bool

	ctx     context.Context      //nolint:containedctx // it lives as long as the call of Judge
	objects map[string]*object   // by kindKey, namespace and name
	byKind  map[string][]*object // by kindKey
	// missing says, for a kind that could not be listed on the cluster, why not.
	missing map[string]string
	// onCluster is true if there is a cluster. Otherwise an object that is in no file can exist.
	onCluster bool
	// hasFiles is true if only objects of files are judged.
	hasFiles bool
	minor    int

	admission *reach.Admission
	webhooks  []*webhook
	policies  []*object
	bindings  []*object
	backends  map[string]*backend
	decided   map[string]*decisions
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

// get returns an object, or nil. If it is not known whether there is one, unknown says why.
func (w *world) get(key, namespace, name string) (found *object, unknown string) {
	if o := w.objects[key+" "+namespace+"/"+name]; o != nil {
		return o, ""
	}
	kind, _, _ := strings.Cut(key, ".")
	in := ""
	if namespace != "" {
		in = " in namespace " + namespace
	}
	if !w.onCluster {
		return nil, fmt.Sprintf("%s %s%s is not in the files", kind, name, in)
	}
	return nil, w.missing[key]
}

// list returns the objects of a kind in a namespace, or in all namespaces for "". If there can be more, unknown says why.
func (w *world) list(key, namespace string) (found []*object, unknown string) {
	for _, o := range w.byKind[key] {
		if namespace == "" || o.GetNamespace() == namespace {
			found = append(found, o)
		}
	}
	if !w.onCluster {
		kind, _, _ := strings.Cut(key, ".")
		return found, "the files need not have every " + kind
	}
	return found, w.missing[key]
}

// assumed reports whether the labels of a namespace are not known, but assumed to be those that Kubernetes sets.
func (w *world) assumed(namespace string) bool {
	found, _ := w.get("Namespace", "", namespace)
	return found == nil && namespace != ordinary
}

// Namespace implements reach.Cluster.
func (w *world) Namespace(_ context.Context, name string) (map[string]any, error) {
	found, unknown := w.get("Namespace", "", name)
	if found == nil {
		if w.onCluster && unknown != "" && name != ordinary {
			return nil, errors.New(unknown)
		}
		return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]any{nameLabel: name}}}, nil
	}
	labels := found.GetLabels()
	if labels[nameLabel] == name {
		return found.Object, nil
	}
	with := found.DeepCopy() // the API server sets the label
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[nameLabel] = name
	with.SetLabels(labels)
	return with.Object, nil
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
	found, unknown := w.list(kindKey(kind), "")
	if unknown != "" {
		return reach.Params{}, errors.New(unknown)
	}
	params := reach.Params{Served: true, Namespaced: known.Namespaced}
	for _, o := range found {
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

// version returns a resource in a version, or nil if it is not served.
func (w *world) version(group, resource, version string) *kinds.Resource {
	for _, known := range w.Find(group, resource) {
		if known.Version == version {
			return known
		}
	}
	return nil
}

// backend is the Service of webhooks, and what is behind it.
type backend struct {
	namespace, name string
	service         *object
	// unknown says why it is not known whether the Service exists.
	unknown string
	// workloads have Pods that the Service selects. Pods are in the cluster.
	workloads, pods []*object
	// workloadsUnknown says why there can be other workloads.
	workloadsUnknown string
	// labels are the labels of a Pod. Nil if they are not known.
	labels map[string]string
}

func (b *backend) String() string { return b.namespace + "/" + b.name }

// backendOf returns the backend of a Service.
func (w *world) backendOf(namespace, name string) *backend {
	b := &backend{namespace: namespace, name: name}
	if known := w.backends[b.String()]; known != nil {
		return known
	}
	w.backends[b.String()] = b
	b.service, b.unknown = w.get("Service", namespace, name)
	if b.service == nil {
		return b
	}
	selector, _, _ := unstructured.NestedStringMap(b.service.Object, "spec", "selector")
	if len(selector) == 0 {
		return b
	}
	b.labels = selector
	for _, kind := range []string{"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"} {
		found, unknown := w.list(kind, namespace)
		for _, workload := range found {
			if template := templateLabels(workload); selects(selector, template) {
				b.workloads, b.labels = append(b.workloads, workload), template
			}
		}
		if unknown != "" && b.workloadsUnknown == "" {
			b.workloadsUnknown = unknown
		}
	}
	pods, unknown := w.list("Pod", namespace)
	for _, pod := range pods {
		if selects(selector, pod.GetLabels()) {
			b.pods = append(b.pods, pod)
		}
	}
	if len(b.pods) > 0 && len(b.workloads) == 0 {
		b.labels = b.pods[0].GetLabels()
	}
	if unknown != "" && b.workloadsUnknown == "" {
		b.workloadsUnknown = unknown
	}
	return b
}

func templateLabels(workload *object) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "template", "metadata", "labels")
	return labels
}

// selects reports whether a selector of a Service selects labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, has := labels[key]; !has || got != value {
			return false
		}
	}
	return true
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
