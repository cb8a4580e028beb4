package framework

import (
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what a Request does, in the API server's own words.
// See https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
type Verb string

// The verbs a Request can have.
const (
	VerbGet              Verb = "get"
	VerbList             Verb = "list"
	VerbCreate           Verb = "create"
	VerbUpdate           Verb = "update"
	VerbPatch            Verb = "patch"
	VerbApply            Verb = "apply" // a PATCH with the server-side apply media type
	VerbDelete           Verb = "delete"
	VerbDeleteCollection Verb = "deletecollection"
	VerbConnect          Verb = "connect"
)

// User is whom a Request is sent as: by impersonation to an API server, as it is
// to a plugin. Its fields are those of the AdmissionReview's userInfo.
type User struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}

// Request is one API request as its author means it. It is a value: a Target
// never writes to it, nor to what it points at.
//
// [Create], [Update], [Delete] and the like make one from what it is about, and
// its methods return changed copies. The fields are for those who compose
// requests from data.
type Request struct {
	// Verb is what to do. Required.
	Verb Verb
	// Kind names the type addressed: of Object for most requests, of the parent
	// for one to a subresource (Kind Deployment, Subresource scale). Empty where a
	// plugin is called in this process: it is found from the type of Object.
	Kind schema.GroupVersionKind
	// Resource is for plugins called in this process. Empty, it is found from Kind.
	Resource schema.GroupVersionResource
	// Namespace is that of the URL. Empty for cluster-scoped kinds.
	Namespace string
	// Name is that of the URL. For a create it is that of the object, which can be
	// empty; it is empty for list and deletecollection.
	Name string
	// Subresource is empty or a name such as "status", "scale", "exec".
	Subresource string
	// Object is the body of create, update and apply; the options of a connect.
	Object runtime.Object
	// OldObject is what is stored, for plugins called in this process: an API server
	// finds it by itself.
	OldObject runtime.Object
	// Parent is the object that Subresource is of, where Object is of another type (a
	// pod, for its binding). Nil means Object itself.
	Parent runtime.Object
	// Creates marks an update or apply of what does not exist yet, which the API
	// server admits as a create (k8s.io/apiserver/pkg/endpoints/handlers/update.go).
	Creates bool
	// RawBody, when not nil, is sent instead of Object, byte for byte.
	RawBody []byte
	// ContentType of the body. Empty means JSON, or what PatchType says.
	ContentType string
	// Patch is the body of a patch, of the type PatchType says.
	Patch     []byte
	PatchType types.PatchType
	// DeleteOptions is the body of delete and deletecollection, as JSON. Nil sends none.
	DeleteOptions map[string]any
	// Options are added to the query: fieldManager, fieldValidation, timeout,
	// labelSelector, the command of an exec, and so on.
	Options url.Values
	// OperationOptions are what a plugin called in this process is given: a
	// *metav1.CreateOptions for a create. Nil means what the API server would send.
	OperationOptions runtime.Object
	// DryRun sends dryRun=All.
	DryRun bool
	// Method is the HTTP method of a connect. Empty means POST.
	Method string
	// ProxyPath is what follows the subresource in the URL of a connect to "proxy".
	ProxyPath string
	// User impersonates. Nil sends the request as the client itself, and calls a
	// plugin with an ordinary authenticated user.
	User *User
	// Unstructured has a plugin called with *unstructured.Unstructured in place of
	// the types of Object and OldObject, as API servers do for custom resources.
	Unstructured bool
	// Version is the API version that the request came by, for plugins called in this
	// process. Empty means that of Object's type, or the preferred one of its group.
	Version schema.GroupVersion
	// ImpossibleBecause is why the Request has a shape that no API server sends.
	// Empty, such a shape is refused: see Impossible.
	ImpossibleBecause string
}
