package framework

import (
	"net/http"
	"net/url"
	"slices"
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
// began: calls of webhooks and, if the server records them, of plugins. The calls of
// webhooks lie inside those of the plugins that call webhooks.
type Trace []Call

// Call is one call of an admission webhook, the request and the response, or of an admission
// plugin of the API server.
type Call struct {
	// Webhook is the name of the webhook in its configuration. Empty for the call of a plugin.
	Webhook string
	// Plugin describes the call of a plugin. Nil for the call of a webhook. Of the other
	// fields, the call of a plugin has Phase, Observed, Started and Finished.
	Plugin *PluginCall
	// Phase is the phase of the webhook: the kind of its configuration.
	Phase Phase
	// Observed is true if a Hook received the call or the API server recorded it, and false if
	// the call is inferred, for instance from audit annotations.
	Observed bool
	// Started is the time at which the Hook had read the call. Finished is the time just
	// before it sent the response, or after it carried out its Fault: a client that has
	// the response finds Finished set. Both are zero for an inferred Call.
	Started, Finished time.Time
	// GivenUp is true if the client disconnected before it had the response. Finished is then
	// the time at which the Hook noticed it.
	GivenUp bool
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
	// Code is the HTTP status code of the response. 0 if no complete response was sent.
	Code int
	// Response is the response of the AdmissionReview that was sent. Its patch is decoded: a
	// list of operations. Nil if there is none.
	Response map[string]any
	// RequestBytes and ResponseBytes are the sizes of the two bodies, as they were sent.
	RequestBytes, ResponseBytes int
	// URL is that of the webhook under test which a proxy called. Empty for a Hook.
	URL string
}

// Request returns the request of the AdmissionReview, or nil.
func (c Call) Request() map[string]any {
	request, _ := c.Review["request"].(map[string]any)
	return request
}

// PluginCall is one call of an admission plugin of an API server.
type PluginCall struct {
	// Name is the name of the plugin: "NamespaceLifecycle".
	Name string
	// Round is 1 in the second pass of the mutating phase (reinvocation), otherwise 0.
	Round int
	// Handled is false if the plugin does not handle the operation, so that it was not called.
	// Started and Finished are then the time at which it would have been called.
	Handled bool
	// Operation ("CREATE"), Resource ("deployments.apps"), Subresource, Namespace and Object,
	// a name, are those of the request as the plugin sees it.
	Operation, Resource, Subresource, Namespace, Object string
	// Changed are the paths of the fields of the object that the call changed:
	// `metadata.labels["example.com/x"]`, in the version of the request. What the call added or
	// removed has one path for each of its values. MoreChanged is the number of further paths,
	// which the server did not record.
	Changed     []string
	MoreChanged int
	// NotComparable is why the server could not find out what the call changed, or "".
	NotComparable string
	// Refused is the refusal. Nil if the plugin did not refuse the request.
	Refused *PluginRefusal
	// Panicked is the value with which the plugin panicked, or "".
	Panicked string
}

// PluginRefusal is the error with which a plugin refused a request.
type PluginRefusal struct {
	// Code is the HTTP status code, Reason the reason of the Status: "Forbidden".
	Code    int
	Reason  string
	Message string
}

// Webhooks returns the names of the webhooks that were called, in order.
func (t Trace) Webhooks() []string {
	names := make([]string, 0, len(t))
	for _, call := range t {
		if call.Plugin == nil {
			names = append(names, call.Webhook)
		}
	}
	return names
}

// Plugins returns the names of the plugins that were called, in order.
func (t Trace) Plugins() []string {
	names := make([]string, 0, len(t))
	for _, call := range t {
		if call.Plugin != nil && call.Plugin.Handled {
			names = append(names, call.Plugin.Name)
		}
	}
	return names
}

// With returns a Trace with further calls, in the order in which they began. The clocks of
// both must be the same: those of one machine.
func (t Trace) With(calls Trace) Trace {
	all := slices.Concat(t, calls)
	slices.SortStableFunc(all, func(a, b Call) int { return a.Started.Round(0).Compare(b.Started.Round(0)) })
	return all
}
