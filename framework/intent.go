package framework

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupAuthenticated is the group that every API server adds to a user it knows,
// anonymousUser and groupUnauthenticated what it makes of one it does not.
// See https://kubernetes.io/docs/reference/access-authn-authz/authentication/
const (
	groupAuthenticated   = "system:authenticated"
	anonymousUser        = "system:anonymous"
	groupUnauthenticated = "system:unauthenticated"
)

// Create is the request that creates obj.
func Create(obj runtime.Object) Request { return about(Request{Verb: VerbCreate, Object: obj}, obj) }

// Update is the request that puts obj in place of what is stored, old.
func Update(old, obj runtime.Object) Request {
	return about(Request{Verb: VerbUpdate, Object: obj, OldObject: old}, obj)
}

// UpdateWith is the request that puts an edited copy of old in its place. It copies
// before it edits, so that both differ in what edit did and in nothing else.
func UpdateWith[T runtime.Object](old T, edit func(T)) Request {
	if absent(old) {
		return Update(nil, nil)
	}
	changed, ok := old.DeepCopyObject().(T)
	if !ok {
		return Update(old, nil)
	}
	edit(changed)
	return Update(old, changed)
}

// CreateOnUpdate is the PUT or apply of an object that does not exist yet: the API
// server admits it as a create, of a name that the URL has given.
func CreateOnUpdate(obj runtime.Object) Request {
	return about(Request{Verb: VerbUpdate, Object: obj, Creates: true}, obj)
}

// Delete is the request that deletes what is stored, old.
func Delete(old runtime.Object) Request {
	return about(Request{Verb: VerbDelete, OldObject: old}, old)
}

// DeleteCollection is what admission sees of a request that deletes many: a delete
// without a name, once for each object stored. Old is one of them.
func DeleteCollection(old runtime.Object) Request {
	request := about(Request{Verb: VerbDeleteCollection, OldObject: old}, old)
	request.Name = ""
	return request
}

// Connect is the request that connects to a subresource of parent: "exec" of a pod,
// with *PodExecOptions.
func Connect(parent runtime.Object, subresource string, options runtime.Object) Request {
	request := about(Request{Verb: VerbConnect, Object: options, Parent: parent}, parent)
	request.Subresource = subresource
	return request
}

// WithSubresource addresses a subresource: "status" of the object itself. Where the
// body is of another type, the object it belongs to is parent:
//
//	framework.Create(binding).WithSubresource("binding", pod)
func (r Request) WithSubresource(name string, parent ...runtime.Object) Request {
	r.Subresource = name
	if len(parent) > 0 {
		r.Parent = parent[0]
		r = about(r, r.Parent)
	}
	return r
}

// As sends the request as an authenticated user, whom the API server puts into
// the group system:authenticated besides those named.
func (r Request) As(user string, groups ...string) Request {
	return r.WithUser(User{Name: user, Groups: append(append([]string{}, groups...), groupAuthenticated)})
}

// Anonymous sends the request as nobody in particular.
func (r Request) Anonymous() Request {
	return r.WithUser(User{Name: anonymousUser, Groups: []string{groupUnauthenticated}})
}

// WithUser sends the request as exactly this user: no group is added.
func (r Request) WithUser(user User) Request {
	r.User = &user
	return r
}

// InNamespace sends the request to a namespace, which goes into objects that name none.
func (r Request) InNamespace(namespace string) Request {
	r.Namespace = namespace
	return r
}

// WithName sends the request for an object of this name.
func (r Request) WithName(name string) Request {
	r.Name = name
	return r
}

// WithDryRun sends dryRun=All.
func (r Request) WithDryRun() Request {
	r.DryRun = true
	return r
}

// WithOptions gives the request these options: *metav1.CreateOptions for a create.
func (r Request) WithOptions(options runtime.Object) Request {
	r.OperationOptions = options
	return r
}

// WithResource addresses this resource, where the type of the object does not say
// which.
func (r Request) WithResource(resource schema.GroupVersionResource) Request {
	r.Resource = resource
	return r
}

// AsUnstructured has a plugin see *unstructured.Unstructured, as for custom resources.
func (r Request) AsUnstructured() Request {
	r.Unstructured = true
	return r
}

// AsVersion sends the request by another version of the API.
func (r Request) AsVersion(version schema.GroupVersion) Request {
	r.Version = version
	return r
}

// Impossible lets a Request have a shape that no API server sends: an update
// without an old object, say. Why is for those who read the test.
func (r Request) Impossible(why string) Request {
	r.ImpossibleBecause = why
	return r
}

// about fills in what a Request has from the object it is about.
func about(r Request, object runtime.Object) Request {
	if absent(object) {
		return r
	}
	r.Kind = object.GetObjectKind().GroupVersionKind()
	if accessor, err := meta.Accessor(object); err == nil {
		r.Name, r.Namespace = accessor.GetName(), accessor.GetNamespace()
	}
	return r
}

// absent reports whether an object is nil, or a nil pointer in an interface.
func absent(object runtime.Object) bool {
	if object == nil {
		return true
	}
	value := reflect.ValueOf(object)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
