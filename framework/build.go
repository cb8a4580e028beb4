package framework

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/object"
)

// An API server adds groupAuthenticated to every user that it authenticates. It treats a request
// without credentials as one of anonymousUser in groupUnauthenticated. See
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/
const (
	groupAuthenticated   = "system:authenticated"
	anonymousUser        = "system:anonymous"
	groupUnauthenticated = "system:unauthenticated"
)

// Create returns the request that creates obj.
func Create(obj runtime.Object) Request {
	return addressTo(Request{Verb: VerbCreate, Object: obj}, obj)
}

// Update returns the request that replaces the stored object old by obj. For an API
// server, which reads the stored object itself, old is nil.
func Update(old, obj runtime.Object) Request {
	return addressTo(Request{Verb: VerbUpdate, Object: obj, InProcess: InProcess{OldObject: old}}, obj)
}

// UpdateWith returns the request that replaces old by an edited copy. It copies old and passes the
// copy to edit, so the old object does not change.
func UpdateWith[T runtime.Object](old T, edit func(T)) Request {
	if object.IsNil(old) {
		return Update(nil, nil)
	}
	changed, ok := old.DeepCopyObject().(T)
	if !ok {
		return Update(old, nil)
	}
	edit(changed)
	return Update(old, changed)
}

// CreateOnUpdate returns a PUT or apply of an object that does not exist yet. The API server admits
// such a request as a create, with the name in the URL.
func CreateOnUpdate(obj runtime.Object) Request {
	return addressTo(Request{Verb: VerbUpdate, Object: obj, InProcess: InProcess{CreateOnUpdate: true}}, obj)
}

// Delete returns the request that deletes the stored object old.
func Delete(old runtime.Object) Request {
	return addressTo(Request{Verb: VerbDelete, InProcess: InProcess{OldObject: old}}, old)
}

// DeleteCollection returns the delete that admission sees for one object of a deleted collection.
// Old is the stored object. The request has no name. For a collection of several objects, an API
// server calls admission once for each object.
func DeleteCollection(old runtime.Object) Request {
	request := addressTo(Request{Verb: VerbDeleteCollection, InProcess: InProcess{OldObject: old}}, old)
	request.Name = ""
	return request
}

// Connect returns the request that connects to a subresource of parent: "exec" of a
// Pod, with *PodExecOptions.
func Connect(parent runtime.Object, subresource string, options runtime.Object) Request {
	request := addressTo(Request{Verb: VerbConnect, Object: options, InProcess: InProcess{Parent: parent}}, parent)
	request.Subresource = subresource
	return request
}

// WithSubresource sends the request to a subresource such as "status". If the body has another type
// than the object with the subresource, give that object as parent:
//
//	framework.Create(binding).WithSubresource("binding", pod)
func (r Request) WithSubresource(name string, parent ...runtime.Object) Request {
	r.Subresource = name
	if len(parent) > 0 {
		r.InProcess.Parent = parent[0]
		r = addressTo(r, parent[0])
	}
	return r
}

// As sends the request as an authenticated user. It adds the group system:authenticated, as an API
// server does.
func (r Request) As(user string, groups ...string) Request {
	return r.WithUser(User{Name: user, Groups: append(append([]string{}, groups...), groupAuthenticated)})
}

// Anonymous sends the request as a client without credentials.
func (r Request) Anonymous() Request {
	return r.WithUser(User{Name: anonymousUser, Groups: []string{groupUnauthenticated}})
}

// WithUser sends the request as exactly this user. It adds no groups.
func (r Request) WithUser(user User) Request {
	r.User = &user
	return r
}

// InNamespace sends the request to a namespace. An object without a namespace gets this namespace.
func (r Request) InNamespace(namespace string) Request {
	r.Namespace = namespace
	return r
}

// WithName sets the name in the URL.
func (r Request) WithName(name string) Request {
	r.Name = name
	return r
}

// WithDryRun sends dryRun=All.
func (r Request) WithDryRun() Request {
	r.DryRun = true
	return r
}

// WithOptions sets the options object that a plugin gets, such as a *metav1.CreateOptions for a
// create.
func (r Request) WithOptions(options runtime.Object) Request {
	r.InProcess.Options = options
	return r
}

// WithResource sets the resource, if it cannot be derived from the type of the object.
func (r Request) WithResource(resource schema.GroupVersionResource) Request {
	r.InProcess.Resource = resource
	return r
}

// AsUnstructured passes the objects to the plugin as *unstructured.Unstructured, as an API server
// does for custom resources.
func (r Request) AsUnstructured() Request {
	r.InProcess.Unstructured = true
	return r
}

// AsVersion sends the request through another version of the API.
func (r Request) AsVersion(version schema.GroupVersion) Request {
	r.InProcess.Version = version
	return r
}

// Impossible allows a Request that no API server sends, for example an update without an old
// object. Why gives the reason to readers of the test. An empty reason allows nothing.
func (r Request) Impossible(why string) Request {
	r.InProcess.ImpossibleBecause = why
	return r
}

// addressTo sets kind, name and namespace of a Request from an object.
func addressTo(r Request, obj runtime.Object) Request {
	if object.IsNil(obj) {
		return r
	}
	r.Kind = obj.GetObjectKind().GroupVersionKind()
	if accessor, err := meta.Accessor(obj); err == nil {
		r.Name, r.Namespace = accessor.GetName(), accessor.GetNamespace()
	}
	return r
}
