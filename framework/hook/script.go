package hook

import (
	"encoding/json"
	"fmt"
	"time"
)

// Script is what a Hook answers. The zero value allows every request.
type Script struct {
	// Replies are used in order, one for each call. The last one is used for all further
	// calls. No replies mean one zero Reply: allow.
	Replies []Reply
}

// Reply is one scripted answer. The zero value allows the request.
type Reply struct {
	// Allowed is response.allowed. Nil means true, or false if Status is set.
	Allowed *bool `json:"allowed,omitempty"`
	// Status is response.status, a metav1.Status in JSON: code, reason, message,
	// details. A reply with a status and without allowed denies the request.
	Status map[string]any `json:"status,omitempty"`
	// Patch is an RFC 6902 JSON Patch. An empty but non-nil list sends "[]".
	Patch []PatchOperation `json:"patch,omitempty"`
	// PatchType is response.patchType. Nil means JSONPatch if there is a patch, and none
	// otherwise. An empty string sends an empty patchType.
	PatchType *string `json:"patchType,omitempty"`
	// Warnings and AuditAnnotations are response.warnings and response.auditAnnotations.
	Warnings         []string          `json:"warnings,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	// Review is a JSON merge patch (RFC 7386) for the AdmissionReview that the fields
	// above result in: null removes a field.
	Review map[string]any `json:"review,omitempty"`
	// HTTP replaces parts of the HTTP response.
	HTTP *HTTP `json:"http,omitempty"`
	// Fault is a way to misbehave. See the Faults.
	Fault Fault `json:"fault,omitempty"`
	// Delay is the time to wait before the answer. The wait ends early when the client
	// disconnects.
	Delay Duration `json:"delay,omitempty"`
	// Barrier is the name of a barrier: the answer waits until BarrierSize calls of the
	// same owner wait at it. It shows concurrency without a clock. A call whose client
	// disconnects leaves the barrier.
	Barrier     string `json:"barrier,omitempty"`
	BarrierSize int    `json:"barrierSize,omitempty"`
	// Meanwhile is called between receiving the call and answering it. Its error is
	// returned by Recording.Err.
	Meanwhile func() error `json:"-"`
}

// PatchOperation is one operation of a JSON Patch (RFC 6902).
type PatchOperation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	// Value is sent for add, replace and test, even if it is null. Other operations have
	// none.
	Value any `json:"value,omitempty"`
}

// HTTP is a scripted HTTP response. Zero fields do not change the response.
type HTTP struct {
	// Code is the HTTP status code. 0 means 200.
	Code int `json:"code,omitempty"`
	// Header is added to the response header. An empty value removes a header.
	Header map[string]string `json:"header,omitempty"`
	// Body replaces the AdmissionReview, byte for byte. Nil does not.
	Body *string `json:"body,omitempty"`
}

// Duration is a time.Duration in Go's notation: "150ms".
type Duration time.Duration

// String returns the duration in Go's notation: "150ms".
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string such as "150ms". A number is an error, because it has
// no unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	var parsed time.Duration
	err := json.Unmarshal(data, &text)
	if err == nil {
		parsed, err = time.ParseDuration(text)
	}
	if err != nil {
		return fmt.Errorf(`read duration: got %s, want a string of a number and a unit, such as "150ms" or "2s"`, data)
	}
	*d = Duration(parsed)
	return nil
}
