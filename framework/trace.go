package framework

import (
	"net/http"
	"net/url"
	"time"
)

// Phase is one of the two phases of admission.
type Phase string

// The phases, in the order in which they run.
const (
	Mutating   Phase = "mutating"
	Validating Phase = "validating"
)

// Trace is the timeline of admission calls made for one Request, in the order in
// which they began.
type Trace []Call

// Call is one call of an admission webhook: what was asked and what was answered.
type Call struct {
	// Webhook is the name of the webhook in its configuration.
	Webhook string
	// Phase is the kind of configuration that the webhook is from.
	Phase Phase
	// Observed is true where a Hook of ours received the call, and false where it
	// is inferred, from audit annotations for instance.
	Observed bool
	// Started is when the Hook had read the call, Finished the moment before it sent
	// its answer (or after it carried out its Fault), so that whoever has the answer
	// finds it set. Both are zero for an inferred Call.
	Started, Finished time.Time
	// Review is the AdmissionReview as received, decoded from JSON. Numbers are
	// int64 or float64.
	Review map[string]any
	// Header and Query are those of the HTTP request; Method and Path too.
	Header       http.Header
	Query        url.Values
	Method, Path string
	// Proto is the HTTP protocol version, "HTTP/1.1" for instance.
	Proto string
	// ServerName is the name that the caller asked for in TLS (SNI). Empty where it
	// gave none: callers by address do not.
	ServerName string
	// Protocols are those that the caller offered in TLS (ALPN), in its order:
	// "http/1.1".
	Protocols []string
	// ClientCertificate is the subject of the certificate that the caller presented,
	// "CN=admission". Empty where it presented none.
	ClientCertificate string
	// Connection tells connections apart: it is the caller's address, as we see it.
	Connection string
	// Answer says in a few words what the Hook did: "allowed", "allowed, patch (2
	// operations)", "denied", or the name of its Fault.
	Answer string
}

// Request returns the Review's request, or nil.
func (c Call) Request() map[string]any {
	request, _ := c.Review["request"].(map[string]any)
	return request
}

// Webhooks returns the names of the webhooks called, in order.
func (t Trace) Webhooks() []string {
	names := make([]string, 0, len(t))
	for _, call := range t {
		names = append(names, call.Webhook)
	}
	return names
}
