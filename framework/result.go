package framework

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Result is the response to one Request.
type Result struct {
	// Status is the status that the client got. Code is always set. For a successful
	// request Status.Status is "Success" and the rest is empty, unless the server
	// answered with a Status object.
	Status metav1.Status
	// Object is the object in the response. Nil if there is none. An API server returns
	// an Unstructured; a plugin in this process returns the type that it was called with.
	Object runtime.Object
	// Warnings are the texts of the Warning headers, unescaped, in order.
	Warnings []string
	// Audit is the audit event of this request. Nil if it was not read: see
	// CapabilityAudit.
	Audit *Audit
	// Trace has the admission calls made for this request.
	Trace Trace
	// AuditID identifies the request in the audit log of the server. Empty if no API
	// server was involved.
	AuditID string
	// Started is the time at which the client began to send the request. Finished is the time at
	// which the client had read the whole response.
	Started, Finished time.Time
}

// Allowed reports whether the request succeeded: an HTTP status below 400.
func (r Result) Allowed() bool { return r.Status.Code > 0 && r.Status.Code < 400 }

// Fields returns Object in its JSON form. Nil if there is no Object, or if its type
// has no JSON form.
func (r Result) Fields() map[string]any {
	switch object := r.Object.(type) {
	case nil:
		return nil
	case runtime.Unstructured:
		return object.UnstructuredContent()
	default:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil
		}
		return fields
	}
}

// Audit is one audit event, of stage ResponseComplete.
// See https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/
type Audit struct {
	// Level is the audit level of the event: "Metadata".
	Level string
	// Annotations are the audit annotations. Plugins, webhooks and policies can add some.
	Annotations map[string]string
	// RequestObject and ResponseObject are nil if the level does not include them. That of a JSON patch is nil.
	RequestObject, ResponseObject map[string]any
	// Plugins are the calls of admission plugins, in the order in which they began. Nil unless the
	// server records the calls of plugins: see CapabilityObservedPlugins.
	// Result.Trace.With(Plugins) sorts these calls and the calls of webhooks into one Trace.
	// Annotations does not include the annotations with these records.
	Plugins Trace
}
