package scenario

// Expectation is the expected result of a step. A field that is not set is not
// checked, with one exception: without Allowed, Code, Reason and RefusedBy the request must be
// allowed.
//
// Values in Object, Calls, Audit and Details are compared in part: a map
// matches if each of its fields does, and the actual map can have more fields;
// a list matches if it has the same length and each item matches; a scalar must be
// equal (numbers by value); null matches null and absent. A map with exactly
// one key that begins with "$" is an operator:
//
//	{$oneOf: [a, b]}       any of these
//	{$not: a}              any other value, but neither absent nor null
//	{$absent: true}        no such field (false: any value, also null)
//	{$exact: {...}}        this and no other fields
//	{$contains: a}         a list with an item that matches, or a string with this part
//	{$containsAll: [a, b]} a list with a match for each, in any order
//	{$startsWith: a}       a string with this prefix
//	{$nonEmpty: true}      neither absent, null, "", [], {} nor 0
//	{$number: {atLeast: 1, atMost: 9}} a number in a range
//	{$json: {...}}         a string that is JSON and matches
//	{$jwt: {...}}          a JSON Web Token whose claims match; exp and nbf are seconds after iat
//	{$entries: [...]}      a map, compared as the list of its {key, value}
//
// An expectation that every result meets is an error: an empty list or map, or a field that must be
// absent and that does not exist.
type Expectation struct {
	// Allowed expects an HTTP status below 400 (true) or another one (false). False without Code,
	// Reason, Message, Details and RefusedBy does not accept an error of a policy or a failed call of
	// a webhook.
	Allowed *bool `json:"allowed,omitempty"`
	// Code are the allowed HTTP status codes, Reason the allowed values of Status.reason.
	Code   OneOrMore[int]    `json:"code,omitempty"`
	Reason OneOrMore[string] `json:"reason,omitempty"`
	// Message are parts of Status.message. The message must contain each of them.
	Message OneOrMore[string] `json:"message,omitempty"`
	// Details is compared with Status.details.
	Details map[string]any `json:"details,omitempty"`
	// RefusedBy is who must have refused the request. A refusal by another one, or for another
	// cause, does not match, whatever its code is.
	RefusedBy *RefusedBy `json:"refusedBy,omitempty"`
	// Object is compared with the object in the response.
	Object map[string]any `json:"object,omitempty"`
	// Warnings are all client warnings, in order. An empty list expects none. A map
	// is an operator: {$contains: …}.
	Warnings any `json:"warnings,omitempty"`
	// Audit is compared with {level, annotations, requestObject, responseObject} of the
	// audit event. It needs the capability "audit".
	Audit map[string]any `json:"audit,omitempty"`
	// Calls are the webhook calls. A list expects exactly these, in the order in which
	// they began; an empty list expects none.
	Calls *Calls `json:"calls,omitempty"`
	// Plugins are calls of the admission plugins of the API server. A list has some of the
	// calls, in the order in which they began: other calls can lie between them. An empty list
	// expects none. On a target that does not record the calls of plugins, the scenario is
	// unsupported.
	Plugins *Plugins `json:"plugins,omitempty"`
	// Distinct are paths in a call, "review.request.uid", whose values must differ
	// between all calls of this step.
	Distinct []string `json:"distinct,omitempty"`
	// Serial (true) expects that each call began after the previous one was answered.
	Serial bool `json:"serial,omitempty"`
	// Overlapping are webhooks whose calls must all have been open at one moment.
	Overlapping []string `json:"overlapping,omitempty"`
	// AnsweredLast (true) expects that the client got its response after the last call was
	// answered, or given up by the API server.
	AnsweredLast bool `json:"answeredLast,omitempty"`

	// PolicyErrors is true if Warnings and Audit have {error: TEXT} for the text of a policy that
	// reports its own error and not a failed validation. The loader sets it for the cases of a
	// PolicyTest.
	PolicyErrors bool `json:"-"`
}

// RefusedBy is a webhook, or a policy, that refuses a request. The response names it. An error of a
// policy and a failed call of a webhook are not refusals by them, unless Error expects one.
type RefusedBy struct {
	// Webhook is the name of the webhook in its configuration.
	Webhook string `json:"webhook,omitempty"`
	// Policy is the name of the policy in its manifest, or one of several names.
	Policy OneOrMore[string] `json:"policy,omitempty"`
	// Binding is the name of the binding in its manifest.
	Binding string `json:"binding,omitempty"`
	// Validation is the whole message of the validation that does not hold.
	Validation string `json:"validation,omitempty"`
	// Error is a part of the error because of which the API server refuses the request: an expression
	// of the policy fails, params are not found, the call of the webhook fails.
	Error string `json:"error,omitempty"`
}

// Calls are the expected webhook calls. In a file they are a list, which is
// InOrder, or a map with the following fields.
type Calls struct {
	// InOrder are all calls, in the order in which they began.
	InOrder []Call `json:"inOrder,omitempty"`
	// AnyOrder are all calls, in any order.
	AnyOrder []Call `json:"anyOrder,omitempty"`
	// Include are some of the calls, in any order.
	Include []Call `json:"include,omitempty"`
	// Exclude are webhooks that must not have been called.
	Exclude []string `json:"exclude,omitempty"`
}

// Call is one expected webhook call. In a file it is the name of the webhook, or a
// map.
type Call struct {
	// Webhook is the name of the webhook in its configuration. Required.
	Webhook string `json:"webhook"`
	// Phase is mutating or validating.
	Phase string `json:"phase,omitempty"`
	// Review is compared with the AdmissionReview, Request with its request.
	Review  map[string]any `json:"review,omitempty"`
	Request map[string]any `json:"request,omitempty"`
	// Query, Header, Method, Path and Proto are compared with the HTTP request: each
	// value of Query and Header with the first one of that name.
	Query  map[string]any `json:"query,omitempty"`
	Header map[string]any `json:"header,omitempty"`
	Method string         `json:"method,omitempty"`
	Path   any            `json:"path,omitempty"`
	Proto  any            `json:"proto,omitempty"`
	// ServerName is compared with the name that the API server requested in TLS (SNI),
	// absent if it requested none, and Protocols with the list that it offered (ALPN).
	ServerName any `json:"serverName,omitempty"`
	Protocols  any `json:"protocols,omitempty"`
	// ClientCertificate is compared with the subject of the API server's client
	// certificate, "CN=admission", absent if it sent none.
	ClientCertificate any `json:"clientCertificate,omitempty"`
	// Connection is compared with an identifier of the connection, a string that another
	// call's can be compared with: "$(steps.ID.calls.0.connection)".
	Connection any `json:"connection,omitempty"`
	// Response is compared with the response of the AdmissionReview that the webhook answered:
	// allowed, status, warnings, and patch, which is a list of operations.
	Response map[string]any `json:"response,omitempty"`
	// Code is compared with the HTTP status code of the answer, absent if there was none.
	Code any `json:"code,omitempty"`
	// LatencyMillis is compared with the time from the call to its answer, in milliseconds:
	// {$number: {atMost: 500}}.
	LatencyMillis any `json:"latencyMillis,omitempty"`
	// RequestBytes and ResponseBytes are compared with the sizes of the bodies of the call and
	// of its answer.
	RequestBytes  any `json:"requestBytes,omitempty"`
	ResponseBytes any `json:"responseBytes,omitempty"`
}

// Plugins are the expected calls of admission plugins. In a file they are a list, which is
// InOrder, or a map with the following fields.
type Plugins struct {
	// InOrder are some of the calls, in the order in which they began. Other calls can lie
	// between them. An empty list expects none.
	InOrder []PluginCall `json:"inOrder,omitempty"`
	// Exclude are plugins that must not have been called.
	Exclude []string `json:"exclude,omitempty"`
}

// PluginCall is one expected call of an admission plugin. In a file it is the name of the
// plugin, or a map.
type PluginCall struct {
	// Plugin is the name of the plugin: NamespaceLifecycle. Required.
	Plugin string `json:"plugin"`
	// Phase is mutating or validating.
	Phase string `json:"phase,omitempty"`
	// Round is 1 in the second pass of the mutating phase (reinvocation), otherwise 0.
	Round *int `json:"round,omitempty"`
	// Handled is false for a plugin that was not called because it does not handle the
	// operation. The default is true.
	Handled *bool `json:"handled,omitempty"`
	// Operation, Resource and Subresource are compared with the request: UPDATE, deployments.apps,
	// scale.
	Operation   string `json:"operation,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	// Changed are the paths of all fields of the object that the call changed, in any order. A
	// path stands for the fields below it too. An empty list expects no change.
	Changed []string `json:"changed,omitempty"`
	// Refused is whether the call refused the request, or a map that is compared with
	// {code, reason, message} of the refusal.
	Refused any `json:"refused,omitempty"`
}

// OneOrMore is a list. In a file, one value is a short form of a list of one.
type OneOrMore[T comparable] []T
