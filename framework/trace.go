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

// Trace has the admission calls for one Request, in the order in which they began. It has the calls
// of webhooks, and of plugins if the server records them. The call of a webhook begins and
// ends within the call of the plugin that calls webhooks.
type Trace []Call

// Call is one call of an admission webhook, or of an admission plugin of the API server.
type Call struct {
	// Webhook is the name of the webhook in its configuration. Empty for the call of a plugin.
	Webhook string
	// Plugin describes the call of a plugin. Nil for the call of a webhook. For the call of a
	// plugin, only Phase, Observed, Started and Finished of the other fields are set.
	Plugin *PluginCall
	// Phase is Mutating or Validating. For a webhook it follows from the kind of the webhook's
	// configuration.
	Phase Phase
	// Observed is true if a Hook received the call or the API server recorded it, and false if
	// the call is inferred, for instance from audit annotations.
	Observed bool
	// Started is the time at which the Hook had read the request. Finished is the time just before
	// the Hook sent the response, or just after it carried out its Fault. So Finished is set when
	// the client has the response. Both are zero for an inferred Call. For the call of a plugin
	// they are the times at which the call began and ended, as the API server recorded them.
	Started, Finished time.Time
	// GivenUp is true if the client disconnected before it had the response. Finished is then the
	// time at which the Hook noticed the end of the connection.
	GivenUp bool
	// Review is the AdmissionReview as received, decoded from JSON. Numbers are int64 or
	// float64.
	Review map[string]any
	// Header, Query, Method and Path are parts of the HTTP request.
	Header       http.Header
	Query        url.Values
	Method, Path string
	// Proto is the version of HTTP: "HTTP/1.1".
	Proto string
	// ServerName is the name in the TLS handshake (SNI). Empty if the client sent none,
	// which is the case for a call by IP address.
	ServerName string
	// Protocols are the protocols that the client offered in the TLS handshake (ALPN), in the
	// client's order: "http/1.1".
	Protocols []string
	// ClientCertificate is the subject of the client certificate: "CN=admission". Empty
	// if the client presented none.
	ClientCertificate string
	// Connection identifies the connection. It is the client's address and port.
	Connection string
	// Answer describes the response in a few words: "allowed", "allowed, patch (2
	// operations)", "denied", or the name of the Fault.
	Answer string
	// Code is the HTTP status code of the response. 0 if no complete response was sent.
	Code int
	// Response is the response of the AdmissionReview that was sent. Its field patch is decoded
	// into a list of operations. Nil if no AdmissionReview was sent.
	Response map[string]any
	// RequestBytes and ResponseBytes are the sizes of the bodies in bytes.
	RequestBytes, ResponseBytes int
	// URL is the URL of the webhook under test to which a Hook passed the call on. Empty if the
	// Hook answered the call itself.
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
	// Handled is false if the API server did not call the plugin, because the plugin does not
	// handle the operation. Started and Finished are then the time at which the call would have
	// begun.
	Handled bool
	// Operation ("CREATE"), Resource ("deployments.apps"), Subresource, Namespace and Object,
	// a name, are attributes of the request as the plugin sees it.
	Operation, Resource, Subresource, Namespace, Object string
	// Changed are the paths of the fields that the call changed, in the JSON form of the object in
	// the version of the request: `metadata.labels["example.com/x"]`. A field that was added or
	// removed as a whole has one path for each value in it. The server records only the first
	// paths: MoreChanged is the number of the other paths.
	Changed     []string
	MoreChanged int
	// NotComparable says why the server could not find out what the call changed. Empty if it
	// could.
	NotComparable string
	// Refused is the refusal. Nil if the plugin did not refuse the request.
	Refused *PluginRefusal
	// Panicked is the text of the value with which the plugin panicked, with function, file and line.
	// Empty if it did not panic.
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

// With returns a Trace of both lists of calls, in the order in which the calls began. The times in
// both lists must come from the clock of one machine.
func (t Trace) With(calls Trace) Trace {
	all := slices.Concat(t, calls)
	slices.SortStableFunc(all, func(a, b Call) int { return a.Started.Round(0).Compare(b.Started.Round(0)) })
	return all
}
