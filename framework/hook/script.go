package hook

import "time"

// Script is what a Hook answers. The zero value allows every request.
type Script struct {
	// Replies are used in turn, one a call; the last is used for every call after
	// it. None means one zero Reply: allow.
	Replies []Reply
}

// Reply is one scripted answer. The zero value allows the request.
type Reply struct {
	// Allowed is the answer's allowed. Nil means true, unless Status is set.
	Allowed *bool `json:"allowed,omitempty"`
	// Status is the answer's status, a metav1.Status as JSON: code, reason,
	// message, details. A reply with a status and no allowed is a denial.
	Status map[string]any `json:"status,omitempty"`
	// Patch is an RFC 6902 JSON Patch. An empty but non-nil list sends "[]".
	Patch []PatchOperation `json:"patch,omitempty"`
	// PatchType overrides the patchType sent beside a patch. Nil means JSONPatch
	// where there is a patch (and none where there is not); an empty string sends
	// an empty one.
	PatchType *string `json:"patchType,omitempty"`
	// Warnings and AuditAnnotations are sent as they are.
	Warnings         []string          `json:"warnings,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	// Review is merged into the AdmissionReview that the fields above make, as a
	// JSON merge patch (RFC 7386): a null removes a field.
	Review map[string]any `json:"review,omitempty"`
	// HTTP replaces the whole HTTP answer or parts of it.
	HTTP *HTTP `json:"http,omitempty"`
	// Fault misbehaves instead of answering, or in answering. See the Faults.
	Fault Fault `json:"fault,omitempty"`
	// Delay is waited before the answer, or until the caller gives up.
	Delay Duration `json:"delay,omitempty"`
	// Barrier names a meeting of calls: the answer waits until as many calls as
	// BarrierSize of the same owner wait at the Barrier of that name. It is how
	// concurrency is shown without a clock. Calls whose caller gives up leave it.
	Barrier     string `json:"barrier,omitempty"`
	BarrierSize int    `json:"barrierSize,omitempty"`
	// Meanwhile runs when the call was received and before it is answered. An
	// error is recorded and returned by Server.Err.
	Meanwhile func() error `json:"-"`
}

// PatchOperation is one operation of a JSON Patch (RFC 6902).
type PatchOperation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	// Value is sent for add, replace and test, null included; never for others.
	Value any `json:"value,omitempty"`
}

// HTTP is a scripted HTTP answer. Zero fields leave what the Reply makes.
type HTTP struct {
	// Code is the HTTP status code; 0 means 200.
	Code int `json:"code,omitempty"`
	// Header is added to the answer's. An empty value removes one.
	Header map[string]string `json:"header,omitempty"`
	// Body replaces the AdmissionReview, byte for byte; nil leaves it.
	Body *string `json:"body,omitempty"`
}

// Duration is a time.Duration written as Go writes it, "150ms" for instance.
type Duration time.Duration
