package framework

import (
	"net/url"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what a Request does, in the words of the API server's authorizers.
// See https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
type Verb string

// The verbs of a Request.
const (
	VerbGet              Verb = "get"
	VerbList             Verb = "list"
	VerbCreate           Verb = "create"
	VerbUpdate           Verb = "update"
	VerbPatch            Verb = "patch"
	VerbApply            Verb = "apply" // a PATCH with the media type of server-side apply
	VerbDelete           Verb = "delete"
	VerbDeleteCollection Verb = "deletecollection"
	VerbConnect          Verb = "connect"
)

// User is the user that sends a Request. On an API server, the client impersonates this user. A
// plugin in this process gets the user as user.Info. The fields are the fields of userInfo in an
// AdmissionReview.
type User struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}

// Request is one API request. A Target never changes a Request or the objects in it.
//
// [Create], [Update], [Delete] and similar functions make a Request from an object;
// its methods return changed copies. Set the fields directly to compose a Request
// from data.
//
// HTTP is only for API servers, and InProcess only for plugins that are called in this process.
// Every Target uses the other fields. A Target refuses a Request with a field that it cannot use:
// the error is an [ErrFieldNotSupported] and names the field.
type Request struct {
	// Verb is the action. Required.
	Verb Verb
	// Kind is the type in the URL: the kind of Object for most requests, and the kind
	// of the parent for a subresource (Kind Deployment, Subresource scale). API servers
	// need it. A plugin in this process does not: it is derived from the Go type of
	// Object.
	Kind schema.GroupVersionKind
	// Namespace is the namespace in the URL. Empty for cluster-scoped kinds.
	Namespace string
	// Name is the name in the URL. For a create it is the name of the object, which may
	// be empty. It is empty for list and deletecollection.
	Name string
	// Subresource is a name such as "status", "scale" or "exec". Empty for the resource
	// itself.
	Subresource string
	// Object is the body of a create, update or apply. For a plugin in this process it
	// is also the options object of a connect, *PodExecOptions for instance.
	Object runtime.Object
	// DryRun sends dryRun=All.
	DryRun bool
	// User is the user that sends the request. Nil means the client's own user on an
	// API server, and an ordinary authenticated user for a plugin in this process.
	User *User
	// HTTP has fields for API servers only.
	HTTP HTTP
	// InProcess has fields for plugins in this process only.
	InProcess InProcess
}

// HTTP is the part of a Request that is only for API servers. The zero value adds nothing to the
// Request.
type HTTP struct {
	// RawBody, when not nil, is sent instead of Object or Patch, byte for byte.
	RawBody []byte
	// ContentType is the media type of the body. Empty means JSON, or the type that
	// PatchType names.
	ContentType string
	// Patch is the body of a patch request. PatchType is its type.
	Patch     []byte
	PatchType types.PatchType
	// DeleteOptions is the body of delete and deletecollection, as JSON. Nil sends none.
	DeleteOptions map[string]any
	// Query is added to the query of the URL: fieldManager, fieldValidation, timeout,
	// labelSelector, the command of an exec, and so on.
	Query url.Values
	// Method is the HTTP method of a connect. Empty means POST.
	Method string
	// ProxyPath follows the subresource in the URL of a connect to "proxy".
	ProxyPath string
}

// InProcess is the part of a Request that an API server computes itself, and that a test of a
// plugin in this process gives. For a field with its zero value, the Target uses what an API server
// would compute from the rest of the Request.
type InProcess struct {
	// OldObject is the stored object of an update or delete.
	OldObject runtime.Object
	// Parent is the object with the subresource, if the body has another type: for a Binding, the
	// Pod. Nil means Object itself.
	Parent runtime.Object
	// CreateOnUpdate marks an update or apply of an object that does not exist yet,
	// which the API server admits as a create
	// (k8s.io/apiserver/pkg/endpoints/handlers/update.go).
	CreateOnUpdate bool
	// Options is the options object that the plugin gets: a *metav1.CreateOptions for a
	// create.
	Options runtime.Object
	// Resource is the resource of the request. Empty means the resource that the RESTMapper returns
	// for the kind.
	Resource schema.GroupVersionResource
	// Version is the API version in the URL. Empty means the version of Object's type,
	// or the preferred version of its group.
	Version schema.GroupVersion
	// Unstructured converts Object and OldObject to *unstructured.Unstructured before
	// the call, which is what a plugin gets for custom resources.
	Unstructured bool
	// ImpossibleBecause is the reason for a Request that no API server sends. If the reason is
	// empty, such a Request is refused. See [Request.Impossible].
	ImpossibleBecause string
}

// FieldsSet returns the names of the fields that are not zero.
func (h HTTP) FieldsSet() []string { return fieldsSet(reflect.ValueOf(h)) }

// FieldsSet returns the names of the fields that are not zero.
func (p InProcess) FieldsSet() []string { return fieldsSet(reflect.ValueOf(p)) }

func fieldsSet(value reflect.Value) []string {
	var names []string
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			names = append(names, value.Type().Field(i).Name)
		}
	}
	return names
}
