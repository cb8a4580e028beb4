package scenario

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// Step is one action and its expected result. It has exactly one of the actions:
// the fields from Create to Files.
type Step struct {
	// ID is a name for placeholders in later steps: "$(steps.ID.object.metadata.uid)".
	ID string `json:"id,omitempty"`

	// Create, Update and Apply send a manifest. In a file, {file: "pod.yaml"} is the manifest in
	// another file, with a path as in givenFiles.
	Create map[string]any `json:"create,omitempty"`
	Update map[string]any `json:"update,omitempty"`
	Apply  map[string]any `json:"apply,omitempty"`
	// Get reads an object, without admission. Use then to check its state.
	Get *ObjectReference `json:"get,omitempty"`
	// List reads a collection, without admission.
	List *ObjectReference `json:"list,omitempty"`
	// Patch sends a patch.
	Patch *Patch `json:"patch,omitempty"`
	// Delete deletes one object, DeleteCollection those that Options select.
	Delete           *Delete `json:"delete,omitempty"`
	DeleteCollection *Delete `json:"deleteCollection,omitempty"`
	// Connect sends a CONNECT request: exec, attach, portforward, proxy.
	Connect *Connect `json:"connect,omitempty"`
	// Parallel runs steps at the same time and waits for all.
	Parallel []Step `json:"parallel,omitempty"`
	// Install writes webhook configurations, policies and other manifests, narrowed
	// like manifests in Given, replaces manifests of the same name, and waits until the API
	// server uses them. In a file, the item {file: "webhook.yaml"} is all manifests in another file.
	Install []map[string]any `json:"install,omitempty"`
	// Remove deletes given objects and waits until the API server no longer uses them.
	Remove []ObjectReference `json:"remove,omitempty"`
	// Script sets new scripts, by webhook name.
	Script map[string]Hook `json:"script,omitempty"`
	// Wait reads an object until it has a state.
	Wait *Wait `json:"wait,omitempty"`
	// Metrics reads a metric of the API server until its samples match.
	Metrics *Metrics `json:"metrics,omitempty"`
	// Files changes the files of the API server: the files of spec.server.files.
	Files *Files `json:"files,omitempty"`

	// Subresource of the request of Create, Update, Apply, Get or Patch.
	Subresource string `json:"subresource,omitempty"`
	// Parent is the apiVersion and kind of the object that Subresource belongs to. By
	// default it is that of the manifest, an apps/v1 Deployment for a Scale, a Pod for
	// an Eviction or a Binding, and a ServiceAccount for a TokenRequest.
	Parent *ObjectReference `json:"parent,omitempty"`
	// Name and Namespace are those in the URL, if they differ from the manifest's.
	Name      string  `json:"name,omitempty"`
	Namespace *string `json:"namespace,omitempty"`
	// As is the user to impersonate.
	As *framework.User `json:"as,omitempty"`
	// DryRun sends dryRun=All.
	DryRun bool `json:"dryRun,omitempty"`
	// Options are added to the query: fieldManager, fieldValidation, timeout, …
	Options map[string]string `json:"options,omitempty"`
	// Body is sent instead of the JSON of the manifest or patch, without changes, as ContentType.
	// The manifest or patch defines the URL.
	Body        *string `json:"body,omitempty"`
	ContentType string  `json:"contentType,omitempty"`
	// Eventually repeats a Get or a dry-run request until Then holds or a limit is
	// reached, for what the API server does after some time.
	Eventually bool `json:"eventually,omitempty"`
	// Then is the expected result. Nil expects only that the request is allowed.
	Then *Expectation `json:"then,omitempty"`
	// Control is true for a step of when that does not test the requirement: it shows that the other steps do,
	// for instance that the webhook which must not be called is called for another request. If it fails, the
	// scenario is inconclusive.
	Control bool `json:"control,omitempty"`
}

// ObjectReference is a reference to one object, or without a name to a collection.
type ObjectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name,omitempty"`
	// Namespace is that of the scenario by default. It is ignored for cluster-scoped kinds.
	Namespace *string `json:"namespace,omitempty"`
}

// Patch is a patch of one object. Exactly one of JSON, Merge and Strategic is set.
type Patch struct {
	ObjectReference `json:",inline"`
	// JSON is an RFC 6902 JSON Patch.
	JSON []hook.PatchOperation `json:"json,omitempty"`
	// Merge is an RFC 7386 JSON Merge Patch.
	Merge map[string]any `json:"merge,omitempty"`
	// Strategic is a strategic merge patch.
	Strategic map[string]any `json:"strategic,omitempty"`
}

// Delete deletes an object, or without a name a collection.
type Delete struct {
	ObjectReference `json:",inline"`
	// Options are the DeleteOptions in the request's body. Nil sends no body.
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
	// Object is what the object must match. Nil waits until the object exists.
	Object map[string]any `json:"object,omitempty"`
	// Gone waits until the object does not exist.
	Gone bool `json:"gone,omitempty"`
}

// Metrics reads a metric of the API server until its samples match.
type Metrics struct {
	// Name is the name of the metric.
	Name string `json:"name"`
	// Labels select samples: those with these labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Samples is what the list of these samples must match, sorted by their labels. A
	// sample has labels and a value, which is the count of a histogram. A histogram also has
	// buckets: their upper bounds, without +Inf.
	Samples any `json:"samples"`
}

// Files changes files of the API server, one after another, each at once.
type Files struct {
	// Write has the new content of files, by their paths in spec.server.files. A file that
	// does not exist is created.
	Write map[string]string `json:"write,omitempty"`
	// Remove are the files to remove, before others are written.
	Remove []string `json:"remove,omitempty"`
}
