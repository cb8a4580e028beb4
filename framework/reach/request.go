package reach

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
)

// Request is a request as admission sees it. The fields correspond to the fields of request in an
// AdmissionReview.
type Request struct {
	// Operation is CREATE, UPDATE, DELETE or CONNECT. Required.
	Operation string
	// Resource and Subresource are those in the URL. Kind is the kind of the body: Scale for the
	// subresource scale. Resource and Kind are required.
	Resource    schema.GroupVersionResource
	Subresource string
	Kind        schema.GroupVersionKind
	// Namespace and Name are those in the URL. For a create, Name is the name of the object as the
	// client sent it. If the API server generates the name, Name is empty and Object has the
	// generated name.
	Namespace, Name string
	// User is the user that sends the request.
	User framework.User
	// Object is the new object, or the options of a connect. Nil for a delete. OldObject is the
	// stored object of an update or delete.
	Object, OldObject map[string]any
	// Sent is the object as the client sent it, if Object is what the API server made of it: a MutatingAdmissionPolicy that has no effect
	// for Object may have changed it, and is judged by Sent too. Nil means that it is not known, or that it is Object.
	Sent map[string]any
	// Options are the CreateOptions, UpdateOptions or DeleteOptions.
	Options map[string]any
	// DryRun is true for dryRun=All.
	DryRun bool
	// WebhooksForReviews is true if the API server calls webhooks for token and access reviews, as before Kubernetes
	// 1.37, and without the feature gate ExcludeAdmissionWebhookVirtualResources. False means that it does not.
	WebhooksForReviews bool
	// NotKnown says why Object and OldObject are not known. Findings that depend on these objects
	// then have EffectUnknown. Empty means that the objects are known.
	NotKnown string
}

// namespacesResource is the resource of namespaces.
func namespacesResource() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

// attributes returns the attributes that an API server passes to its admission plugins in a phase.
func (r Request) attributes(mutating bool) admission.Attributes {
	namespace, name := r.Namespace, r.Name
	if name == "" && !mutating {
		name = (&unstructured.Unstructured{Object: r.Object}).GetName() // generated between the phases
	}
	if r.Resource.GroupResource() == namespacesResource() {
		namespace = r.Name // for admission, a Namespace object is in the namespace of the same name
	}
	object := asObject(r.object(mutating))
	if r.Operation == string(admission.Connect) {
		object = withoutMetadata{object}
	}
	return admission.NewAttributesRecord(object, asObject(r.OldObject), r.Kind, namespace, name, r.Resource, r.Subresource,
		admission.Operation(r.Operation), asObject(r.Options), r.DryRun, &user.DefaultInfo{
			Name: r.User.Name, UID: r.User.UID, Groups: r.User.Groups, Extra: r.User.Extra,
		})
}

// object returns the new object in a phase. In the mutating phase, a generated name is not set yet.
func (r Request) object(mutating bool) map[string]any {
	if !mutating || r.Name != "" || r.Operation != string(admission.Create) || r.Object == nil {
		return r.Object
	}
	object := (&unstructured.Unstructured{Object: r.Object}).DeepCopy()
	object.SetName("")
	return object.Object
}

// asObject returns fields as an object. For nil it returns a nil interface, not a nil pointer.
func asObject(fields map[string]any) runtime.Object {
	if fields == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: fields}
}

// withoutMetadata is an object without metadata: the options of a connect. An objectSelector never
// matches such an object. It does match an Unstructured, which has metadata with empty labels, if
// the selector is about missing labels.
type withoutMetadata struct{ runtime.Object }

// versioned returns the attributes with objects of a version, for expressions.
func versioned(attributes admission.Attributes, kind schema.GroupVersionKind, object, old map[string]any) (*admission.VersionedAttributes, error) {
	given := withObjects{attributes, asKind(object, kind), asKind(old, kind)}
	all, err := admission.NewVersionedAttributes(given, kind, nil) // nil: nothing has to be converted
	if err == nil {
		all.Attributes = attributes
	}
	return all, err
}

// asKind is asObject for an object that has this kind, or does not say which kind it has.
func asKind(fields map[string]any, kind schema.GroupVersionKind) runtime.Object {
	if fields == nil {
		return nil
	}
	object := &unstructured.Unstructured{Object: maps.Clone(fields)}
	object.SetGroupVersionKind(kind)
	return object
}

// withObjects are attributes with other objects.
type withObjects struct {
	admission.Attributes
	object, old runtime.Object
}

func (w withObjects) GetObject() runtime.Object    { return w.object }
func (w withObjects) GetOldObject() runtime.Object { return w.old }
