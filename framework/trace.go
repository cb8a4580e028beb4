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

// Trace has the admission calls made for one Request, in the order in which they
// began.
type Trace []Call

// Call is one call of an admission webhook: the request and the response.
type Call struct {
	// Webhook is the name of the webhook in its configuration.
	Webhook string
	// Phase is the phase of the webhook: the kind of its configuration.
	Phase Phase
	// Observed is true if a Hook received the call, and false if the call is inferred,
	// for instance from audit annotations.
	Observed bool
	// Started is the time at which the Hook had read the call. Finished is the time just
	// before it sent the response, or after it carried out its Fault: a client that has
	// the response finds Finished set. Both are zero for an inferred Call.
	Started, Finished time.Time
	// Review is the AdmissionReview as received, decoded from JSON. Numbers are int64 or
	// float64.
	Review map[string]any
	// Header, Query, Method and Path are those of the HTTP request.
	Header       http.Header
	Query        url.Values
	Method, Path string
	// Proto is the version of HTTP: "HTTP/1.1".
	Proto string
	// ServerName is the name in the TLS handshake (SNI). Empty if the client sent none,
	// which is the case for a call by IP address.
	ServerName string
	// Protocols are the protocols that the client offered in the TLS handshake (ALPN),
	// in its order: "http/1.1".
	Protocols []string
	// ClientCertificate is the subject of the client certificate: "CN=admission". Empty
	// if the client presented none.
	ClientCertificate string
	// Connection identifies the connection: it is the address of the client.
	Connection string
	// Answer describes the response in a few words: "allowed", "allowed, patch (2
	// operations)", "denied", or the name of the Fault.
	Answer string
}

// Request returns the request of the AdmissionReview, or nil.
func (c Call) Request() map[string]any {
	request, _ := c.Review["request"].(map[string]any)
	return request
}

// Webhooks returns the names of the webhooks that were called, in order.
func (t Trace) Webhooks() []string {
	names := make([]string, 0, len(t))
	for _, call := range t {
		names = append(names, call.Webhook)
	}
	return names
}
