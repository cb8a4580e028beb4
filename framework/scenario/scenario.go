package scenario

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// The apiVersion and kind of every scenario file.
const (
	APIVersion = "admissiontest.dev/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is one requirement's test as data.
type Scenario struct {
	// APIVersion is always admissiontest.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is always Scenario.
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`

	// File is where the scenario was read from; Area is the folder it lies in. The
	// loader sets both.
	File string `json:"-"`
	Area string `json:"-"`
	// Lines gives the line of each step in File, in the order of Spec.When.
	Lines []int `json:"-"`
}

// Metadata names a scenario.
type Metadata struct {
	// Name is the requirement's stable slug: dot-separated lower-case words, the
	// area first, "reinvocation.if-needed.again-after-later-change".
	Name string `json:"name"`
}

// Spec is what a scenario says.
type Spec struct {
	// Level is MUST, SHOULD or MAY.
	Level framework.Level `json:"level"`
	// Requirement is the law in one sentence.
	Requirement string `json:"requirement"`
	// Source is where the law stands: URLs of documentation or upstream files.
	Source []string `json:"source"`
	// Behaviours are IDs of the behaviour catalogue that the scenario shows.
	Behaviours []string `json:"behaviours,omitempty"`
	// Since is the first Kubernetes minor version that the law holds for, "1.36".
	// A target of an older version gets the verdict unsupported.
	Since string `json:"since,omitempty"`
	// FeatureGate must be on in the target, or the verdict is unsupported.
	FeatureGate string `json:"featureGate,omitempty"`
	// Needs names abilities a target may lack: "audit" (access to the audit log),
	// "webhook-credentials" (credentials for webhooks called by the name localhost),
	// "hook-service" (a Service of type ExternalName $(hooks.host) leads to our
	// webhooks), "hooks-at-443" (they are at that port). A target that lacks one gets the verdict unsupported.
	Needs []string `json:"needs,omitempty"`
	// Notes say what a reader must know, above all where a real API server
	// disagreed with the behaviour catalogue.
	Notes string `json:"notes,omitempty"`
	// Server asks for an API server of its own, with other flags.
	Server *Server `json:"server,omitempty"`
	// Alone runs the scenario while no other has anything installed, for what
	// cannot be narrowed to a namespace.
	Alone bool `json:"alone,omitempty"`
	// GivenFiles are files with manifests that stand before the first step, those of
	// the project under test: "../config/webhook.yaml". Their paths are relative to the
	// scenario's file. The loader puts what is in them before what Given has.
	GivenFiles []string `json:"givenFiles,omitempty"`
	// Given are Kubernetes manifests that stand before the first step. Webhook
	// configurations and policies are narrowed to the scenario. One takes the place of
	// one from a file that has its kind and name.
	Given []map[string]any `json:"given,omitempty"`
	// Hooks are the scripts of the webhooks in Given, by webhook name. A webhook
	// without one allows every request. A webhook under test, which its configuration
	// leads to a Service of its own, has none.
	Hooks map[string]Hook `json:"hooks,omitempty"`
	// Conversion is how our webhook converts the custom resources whose
	// CustomResourceDefinition in Given has the conversion strategy Webhook and no
	// clientConfig.
	Conversion *hook.Conversion `json:"conversion,omitempty"`
	// When are the steps, carried out in order.
	When []Step `json:"when"`
}

// Server is the profile of an API server that a scenario asks for. Scenarios of
// one profile share a server. Only target envtest can give one.
type Server struct {
	// Flags of kube-apiserver without the dashes: {"enable-admission-plugins": "X"}.
	Flags map[string]string `json:"flags,omitempty"`
	// FeatureGates by name.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Files are written to a folder before the server starts; "$(files)" in Flags
	// and in Files is that folder, "$(hooks.port)" the port of our webhooks, and
	// "$(id)" the ID of the profile's scenario where it has one only.
	Files map[string]string `json:"files,omitempty"`
}

// Hook is the script of one webhook: either one reply for every call, or replies
// in turn.
type Hook struct {
	Reply `json:",inline"`
	// Replies are used in turn, one a call in the scenario since the script was set;
	// the last one for every later call. It excludes the fields of a single reply.
	Replies []Reply `json:"replies,omitempty"`
}

// Reply is one scripted answer.
type Reply struct {
	hook.Reply `json:",inline"`
	// Meanwhile are steps carried out after the call was received and before it is
	// answered: another client that acts at that moment.
	Meanwhile []Step `json:"meanwhile,omitempty"`
}

// Step is one action and what is expected of it. It has exactly one of the
// actions: Create to Wait.
type Step struct {
	// ID lets later steps use what came back: "$(steps.ID.object.metadata.uid)".
	ID string `json:"id,omitempty"`

	// Create, Update and Apply send a manifest.
	Create map[string]any `json:"create,omitempty"`
	Update map[string]any `json:"update,omitempty"`
	Apply  map[string]any `json:"apply,omitempty"`
	// Get reads an object and never reaches admission. Expect its state with then.
	Get *ObjectReference `json:"get,omitempty"`
	// List reads a collection and never reaches admission.
	List *ObjectReference `json:"list,omitempty"`
	// Patch sends a patch.
	Patch *Patch `json:"patch,omitempty"`
	// Delete deletes one object, DeleteCollection those that Options select.
	Delete           *Delete `json:"delete,omitempty"`
	DeleteCollection *Delete `json:"deleteCollection,omitempty"`
	// Connect sends a CONNECT request: exec, attach, portforward, proxy.
	Connect *Connect `json:"connect,omitempty"`
	// Parallel carries out steps at the same time, and waits for all.
	Parallel []Step `json:"parallel,omitempty"`
	// Install writes webhook configurations, policies and other given objects,
	// narrowed as those in Given are, in place of earlier ones of the same name, and
	// waits until the API server acts on them.
	Install []map[string]any `json:"install,omitempty"`
	// Remove deletes given objects and waits until the API server no longer acts on them.
	Remove []ObjectReference `json:"remove,omitempty"`
	// Script sets new scripts, by webhook name.
	Script map[string]Hook `json:"script,omitempty"`
	// Wait reads an object until it has a state.
	Wait *Wait `json:"wait,omitempty"`

	// Subresource of the request of Create, Update, Apply, Get or Patch.
	Subresource string `json:"subresource,omitempty"`
	// Parent is the apiVersion and kind that Subresource belongs to, where that is
	// not the manifest's own: a Scale belongs to apps/v1 Deployment unless this says
	// otherwise, an Eviction or Binding to a Pod, a TokenRequest to a ServiceAccount.
	Parent *ObjectReference `json:"parent,omitempty"`
	// Name and Namespace of the URL, where they are not the manifest's.
	Name      string  `json:"name,omitempty"`
	Namespace *string `json:"namespace,omitempty"`
	// As impersonates a user.
	As *framework.User `json:"as,omitempty"`
	// DryRun sends dryRun=All.
	DryRun bool `json:"dryRun,omitempty"`
	// Options are added to the query: fieldManager, fieldValidation, timeout, …
	Options map[string]string `json:"options,omitempty"`
	// Body is sent in place of the manifest's JSON, byte for byte, as ContentType.
	// The manifest still says which object is meant.
	Body        *string `json:"body,omitempty"`
	ContentType string  `json:"contentType,omitempty"`
	// Eventually repeats a Get or a dry-run request until Then holds or a bound is
	// reached, for what the API server makes true in its own time.
	Eventually bool `json:"eventually,omitempty"`
	// Then is what is expected. Nil expects only that the request is allowed, and
	// nothing of the calls made.
	Then *Expectation `json:"then,omitempty"`
}

// ObjectReference names one object, or with no name a collection.
type ObjectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name,omitempty"`
	// Namespace is the scenario's own unless set. It is ignored for cluster-scoped kinds.
	Namespace *string `json:"namespace,omitempty"`
}

// Patch is a patch of one object.
type Patch struct {
	ObjectReference `json:",inline"`
	// Exactly one of the following is the patch.

	// JSON is an RFC 6902 JSON Patch.
	JSON []hook.PatchOperation `json:"json,omitempty"`
	// Merge is an RFC 7386 JSON Merge Patch.
	Merge map[string]any `json:"merge,omitempty"`
	// Strategic is a strategic merge patch.
	Strategic map[string]any `json:"strategic,omitempty"`
}

// Delete deletes an object, or with no name a collection.
type Delete struct {
	ObjectReference `json:",inline"`
	// Options is the DeleteOptions sent as the body. Nil sends none.
	Options map[string]any `json:"options,omitempty"`
}

// Connect is a CONNECT request to a subresource.
type Connect struct {
	ObjectReference `json:",inline"`
	// Subresource is exec, attach, portforward or proxy.
	Subresource string `json:"subresource"`
	// Method is the HTTP method; empty means POST.
	Method string `json:"method,omitempty"`
	// Path follows "proxy" in the URL.
	Path string `json:"path,omitempty"`
	// Parameters are the query: command, container, stdin, …; several values of one
	// name are sent in order.
	Parameters map[string][]string `json:"parameters,omitempty"`
}

// Wait reads an object until it has a state.
type Wait struct {
	ObjectReference `json:",inline"`
	// Object is what the object must match. Nil waits until it is there.
	Object map[string]any `json:"object,omitempty"`
	// Gone waits until the object is not there.
	Gone bool `json:"gone,omitempty"`
}
