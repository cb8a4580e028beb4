package reach

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
)

// Request is a request as admission sees it: the fields are those of an AdmissionReview's request.
type Request struct {
	// Operation is CREATE, UPDATE, DELETE or CONNECT. Required.
	Operation string
	// Resource is the resource in the URL, and Subresource its subresource. Kind is the kind of
	// the body: Scale, for the subresource scale. Required, except for Subresource.
	Resource    schema.GroupVersionResource
	Subresource string
	Kind        schema.GroupVersionKind
	// Namespace and Name are those in the URL. For a create, Name is that of the object as it was
	// sent: it is empty if the API server generates the name, which Object then has.
	Namespace, Name string
	// User is the user that sends the request.
	User framework.User
	// Object is the new object: nil for a delete. OldObject is the stored object of an update or
	// delete. Object of a connect is its options.
	Object, OldObject map[string]any
	// Options are the CreateOptions, UpdateOptions or DeleteOptions.
	Options map[string]any
	// DryRun is true if the request does not change anything.
	DryRun bool
	// NotKnown is why Object and OldObject are not known. Findings that depend on them are then
	// EffectUnknown.
	NotKnown string
}

// namespacesResource is the resource of namespaces.
func namespacesResource() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

// attributes returns the record that an API server passes to its admission plugins of a phase.
func (r Request) attributes(mutating bool) admission.Attributes {
	namespace, name := r.Namespace, r.Name
	if name == "" && !mutating {
		name = (&unstructured.Unstructured{Object: r.Object}).GetName() // generated between the phases
	}
	if r.Resource.GroupResource() == namespacesResource() {
		namespace = r.Name // a namespace counts as being in itself
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

// object returns the new object in a phase. A name is generated between the phases.
func (r Request) object(mutating bool) map[string]any {
	if !mutating || r.Name != "" || r.Operation != string(admission.Create) || r.Object == nil {
		return r.Object
	}
	object := (&unstructured.Unstructured{Object: r.Object}).DeepCopy()
	object.SetName("")
	return object.Object
}

// asObject returns nil for nil: an interface without a value.
func asObject(fields map[string]any) runtime.Object {
	if fields == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: fields}
}

// withoutMetadata is an object that has no labels, which a selector never matches: the options of a
// connect. An Unstructured has empty labels.
type withoutMetadata struct{ runtime.Object }

// versioned returns the attributes with objects of a version, for expressions.
func versioned(attributes admission.Attributes, kind schema.GroupVersionKind, object, old map[string]any) *admission.VersionedAttributes {
	return &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: kind, VersionedObject: asObject(object), VersionedOldObject: asObject(old),
	}
}

// labelsOf returns the labels that the objectSelector compares: those of the new object, then those
// of the old one. A nil map is an object that has none.
func (r Request) labelsOf() []map[string]string {
	var all []map[string]string
	for _, fields := range []map[string]any{r.Object, r.OldObject} {
		if fields != nil && r.Operation != string(admission.Connect) {
			all = append(all, (&unstructured.Unstructured{Object: fields}).GetLabels())
		}
	}
	return all
}
