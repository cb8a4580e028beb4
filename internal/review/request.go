package review

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Kinds knows the resources of kinds: of Kubernetes' own, and of CustomResourceDefinitions. The zero value knows
// only Kubernetes' own kinds.
type Kinds struct {
	definitions []map[string]any
}

// NewKinds returns the Kinds with the CustomResourceDefinitions among the manifests.
func NewKinds(manifests []map[string]any) Kinds {
	var k Kinds
	for _, each := range manifests {
		if each["kind"] == "CustomResourceDefinition" {
			k.definitions = append(k.definitions, each)
		}
	}
	return k
}

// Of returns the resource of a kind, and whether it is namespaced. For an unknown kind, the resource is a guess, and known is
// false.
func (k Kinds) Of(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, known bool) {
	if definition, _ := k.definition(kind); definition != nil {
		plural, _, _ := unstructured.NestedString(definition, "spec", "names", "plural")
		in, _, _ := unstructured.NestedString(definition, "spec", "scope")
		return kind.GroupVersion().WithResource(plural), in != "Cluster", true
	}
	resource, _ = meta.UnsafeGuessKindToResource(kind)
	return resource, !kinds.IsCluster(kind.GroupKind()), scheme.Scheme.Recognizes(kind)
}

// New returns the request that an API server would get for a manifest, with the metadata that it sets before
// admission. Custom resources get the defaults of their CustomResourceDefinition. An update changes nothing: the object is the old object. The subresources are status, scale, eviction, binding,
// ephemeralcontainers and resize, and exec, attach, portforward and proxy for CONNECT; empty is the object itself.
func (k Kinds) New(manifest map[string]any, operation, subresource string) (reach.Request, error) {
	fields, err := Encoded(manifest)
	if err != nil {
		return reach.Request{}, err
	}
	fields = k.Defaulted(fields)
	kind, err := object.Kind(fields)
	if err != nil {
		return reach.Request{}, err
	}
	resource, namespaced, known := k.Of(kind)
	u := unstructured.Unstructured{Object: fields}
	switch {
	case namespaced && u.GetNamespace() == "" && known:
		u.SetNamespace("default")
	case !namespaced:
		unstructured.RemoveNestedField(fields, "metadata", "namespace")
	}
	if _, ok := fields["metadata"].(map[string]any); !ok {
		return reach.Request{}, fmt.Errorf("%s has no metadata: give it a name", object.Describe(fields))
	}
	setManagedFields(&u)
	r := reach.Request{Operation: operation, Resource: resource, Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName(), User: User()}
	if kind.Kind == "Namespace" && kind.Group == "" {
		r.Namespace = u.GetName()
	}
	switch operation {
	case OpCreate:
		r.Object, r.Options = fields, options("CreateOptions", "kubectl-create")
	case OpUpdate:
		r.OldObject = Stored(fields)
		r.Object, r.Options = Stored(fields), options("UpdateOptions", "kubectl-edit")
	case OpDelete:
		r.OldObject, r.Options = Stored(fields), options("DeleteOptions", "")
	case OpConnect:
	default:
		return r, fmt.Errorf("operation is %q; want CREATE, UPDATE, DELETE or CONNECT", operation)
	}
	if subresource != "" || operation == OpConnect {
		return r, setSubresource(&r, subresource)
	}
	return r, nil
}

// The metadata of stored objects.
const storedUID, storedTime = "0f8fad5b-d9cb-469f-a165-70867728950e", "2024-05-06T07:08:09Z"

// generatedSuffix is what an API server adds to a generateName.
const generatedSuffix = "x7k2p"

// Stored returns a copy of an object with the metadata that an API server sets when it stores it.
func Stored(fields map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: fields}).DeepCopy()
	if u.GetName() == "" {
		u.SetName(u.GetGenerateName() + generatedSuffix)
	}
	for path, value := range map[string]any{"uid": storedUID, "resourceVersion": "4711", "generation": int64(1), "creationTimestamp": storedTime} {
		_ = unstructured.SetNestedField(u.Object, value, "metadata", path) // it has metadata
	}
	return u.Object
}

// Validated returns a request as validating webhooks get it. After the mutating webhooks, an API server sets the uid,
// the time and the generated name of an object that is created, and makes Scales anew, without managedFields.
func Validated(r reach.Request) reach.Request {
	switch {
	case r.Operation == OpCreate && r.Subresource == "" && r.Object != nil:
		u := (&unstructured.Unstructured{Object: r.Object}).DeepCopy()
		if u.GetName() == "" && u.GetGenerateName() != "" {
			u.SetName(u.GetGenerateName() + generatedSuffix)
		}
		u.SetUID(storedUID)
		_ = unstructured.SetNestedField(u.Object, storedTime, "metadata", "creationTimestamp") // it has metadata
		r.Object, r.Name = u.Object, cmp.Or(r.Name, u.GetName())
	case r.Operation == OpUpdate && r.Subresource == "scale":
		for _, fields := range []*map[string]any{&r.Object, &r.OldObject} {
			u := (&unstructured.Unstructured{Object: *fields}).DeepCopy()
			u.SetManagedFields(nil)
			*fields = u.Object
		}
	}
	return r
}

// setManagedFields sets the entry of the client that created the object.
func setManagedFields(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{ // it has metadata
		"manager": "kubectl-create", "operation": "Update", "apiVersion": u.GetAPIVersion(), "time": "2024-05-06T07:08:09Z",
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}}}},
	}}, "metadata", "managedFields")
}

func options(kind, manager string) map[string]any {
	fields := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": kind}
	if manager != "" {
		fields["fieldManager"] = manager
	}
	return fields
}

// errSubresource is the error of a subresource that does not exist for an operation.
var errSubresource = errors.New("want status, scale, ephemeralcontainers or resize for UPDATE, eviction or binding for CREATE, and exec, attach, portforward or proxy for CONNECT")

// setSubresource changes the request for an object to the request for a subresource of it.
func setSubresource(r *reach.Request, subresource string) error {
	body := func(apiVersion, kind string, more map[string]any) {
		group, _ := schema.ParseGroupVersion(apiVersion) // a constant
		r.Kind, r.Object = group.WithKind(kind), map[string]any{"apiVersion": apiVersion, "kind": kind}
		for name, value := range more {
			r.Object[name] = value
		}
	}
	metadata := map[string]any{"name": r.Name, "namespace": r.Namespace}
	if slices.Contains([]schema.GroupKind{{Group: "policy", Kind: "Eviction"}, {Group: "autoscaling", Kind: "Scale"}, {Kind: "Binding"}}, r.Kind.GroupKind()) && subresource != "" {
		return fmt.Errorf("%s is what a request for a subresource has: give the object with the subresource, and its name %q beside it", r.Kind.Kind, subresource)
	}
	r.Subresource = subresource
	switch r.Operation + " " + subresource {
	case "UPDATE status", "UPDATE resize", "UPDATE ephemeralcontainers":
	case "UPDATE scale":
		number := func(of string, otherwise int64) map[string]any {
			replicas, found, _ := unstructured.NestedFieldNoCopy(r.OldObject, of, "replicas")
			if !found {
				replicas = otherwise
			}
			return map[string]any{"replicas": replicas}
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
			metadata[field], _, _ = unstructured.NestedFieldCopy(r.OldObject, "metadata", field)
		}
		body("autoscaling/v1", "Scale", map[string]any{"metadata": metadata, "spec": number("spec", 1), "status": number("status", 0)})
		r.OldObject = (&unstructured.Unstructured{Object: r.Object}).DeepCopy().Object
	case "CREATE eviction":
		body("policy/v1", "Eviction", map[string]any{"metadata": metadata})
	case "CREATE binding":
		metadata["managedFields"], _, _ = unstructured.NestedSlice(r.Object, "metadata", "managedFields")
		body("v1", "Binding", map[string]any{"metadata": metadata, "target": map[string]any{"kind": "Node", "name": "node-1"}})
	case "CONNECT exec":
		body("v1", "PodExecOptions", map[string]any{"stdout": true, "command": []any{"date"}})
	case "CONNECT attach":
		body("v1", "PodAttachOptions", map[string]any{"stdout": true})
	case "CONNECT portforward":
		body("v1", "PodPortForwardOptions", map[string]any{"ports": []any{int64(8080)}})
	case "CONNECT proxy":
		body("v1", strings.TrimSuffix(r.Kind.Kind, "Options")+"ProxyOptions", map[string]any{"path": "/"})
	default:
		return fmt.Errorf("%s of subresource %q: %w", r.Operation, subresource, errSubresource)
	}
	if r.Operation == OpConnect {
		r.Options = nil
	}
	return nil
}
