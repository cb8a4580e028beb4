package framework

import (
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// User is whom a Request is sent as, by impersonation. Its fields are those of
// the AdmissionReview's userInfo.
type User struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}

// Request is one API request as its author means it. It is a value: a Target
// never writes to it, nor to what it points at.
type Request struct {
	// Verb is what to do. Required.
	Verb Verb
	// Kind names the type addressed: of Object for most requests, of the parent
	// for one to a subresource (Kind Deployment, Subresource scale).
	Kind schema.GroupVersionKind
	// Namespace is that of the URL. Empty for cluster-scoped kinds.
	Namespace string
	// Name is that of the URL. Empty for create (unless Subresource is set), list
	// and deletecollection.
	Name string
	// Subresource is empty or a name such as "status", "scale", "exec".
	Subresource string
	// Object is the body of create, update and apply.
	Object *unstructured.Unstructured
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
	// DryRun sends dryRun=All.
	DryRun bool
	// Method is the HTTP method of a connect. Empty means POST.
	Method string
	// ProxyPath is what follows the subresource in the URL of a connect to "proxy".
	ProxyPath string
	// User impersonates. Nil sends the request as the client itself.
	User *User
}
