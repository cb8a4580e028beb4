package framework

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Result is what came back for one Request.
type Result struct {
	// Status is what the client saw. Code is always set. For a request that was
	// carried out Status.Status is "Success" and the rest is empty, unless the
	// server answered with a Status object.
	Status metav1.Status
	// Object is the object in the answer; nil where there is none. A cluster answers
	// with an Unstructured, a plugin in this process with the type it was given.
	Object runtime.Object
	// Warnings are the texts of the Warning headers, unescaped, in order.
	Warnings []string
	// Audit is what the API server's audit log says of this request. Nil where the
	// Target has no access to it.
	Audit *Audit
	// Trace is the timeline of admission calls made for this request.
	Trace Trace
	// AuditID identifies the request in the server's audit log.
	AuditID string
	// Started and Finished are when the client began to send the request and
	// when it had read the answer.
	Started, Finished time.Time
}

// Allowed reports whether the request was carried out: an HTTP status below 400.
func (r Result) Allowed() bool { return r.Status.Code > 0 && r.Status.Code < 400 }

// Fields returns the fields of an Object as JSON would have them; nil where there
// is none, or where its type is not one that has a JSON form.
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
	// Level is the event's audit level, "Metadata" for instance.
	Level string
	// Annotations are the event's annotations, which admission writes to.
	Annotations map[string]string
	// RequestObject and ResponseObject are nil where the level leaves them out.
	RequestObject, ResponseObject map[string]any
}
