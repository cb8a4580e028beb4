package scenario

// Expectation is what must be true of a Result. Every field left out is not
// looked at, but for one: without Allowed, Code and Reason a request is expected
// to be allowed.
//
// Values in Object, Calls, Audit and Details are matched as parts: a mapping
// matches when each of its fields does, whatever else the actual one has; a list
// matches item by item and must have the same length; a scalar must be equal
// (numbers by value); null matches null and absent alike. A mapping with exactly
// one key that begins with "$" is an operator instead:
//
//	{$oneOf: [a, b]}       any of these
//	{$not: a}              not this
//	{$absent: true}        no such field (false: some value, null included)
//	{$exact: {...}}        this and nothing more
//	{$contains: a}         a list with an item that matches, or a text with this part
//	{$containsAll: [a, b]} a list with a match for each, in any order
//	{$startsWith: a}       a text that begins so
//	{$nonEmpty: true}      neither absent, null, "", [], {} nor 0
//	{$number: {atLeast: 1, atMost: 9}} a number in a range
//	{$json: {...}}         a text that is JSON which matches
//	{$entries: [...]}      a mapping, matched as the list of its {key, value}
type Expectation struct {
	// Allowed expects that the request was carried out (HTTP status below 400) or not.
	Allowed *bool `json:"allowed,omitempty"`
	// Code is the set of HTTP status codes allowed, Reason that of Status.reason.
	Code   OneOrMore[int]    `json:"code,omitempty"`
	Reason OneOrMore[string] `json:"reason,omitempty"`
	// Message are parts that Status.message must have, each of them.
	Message OneOrMore[string] `json:"message,omitempty"`
	// Details is matched with Status.details.
	Details map[string]any `json:"details,omitempty"`
	// Object is matched with the object in the answer.
	Object map[string]any `json:"object,omitempty"`
	// Warnings are the client warnings, in order and no others. An empty list
	// expects none. A mapping is an operator: {$contains: …}.
	Warnings any `json:"warnings,omitempty"`
	// Audit is matched with {level, annotations, requestObject, responseObject} of
	// the audit event. It needs the ability "audit".
	Audit map[string]any `json:"audit,omitempty"`
	// Calls are the webhook calls made, in the order in which they began, and no
	// others. An empty list expects none.
	Calls *Calls `json:"calls,omitempty"`
	// Distinct are paths into a call, "review.request.uid", whose values must differ
	// between all calls of this step.
	Distinct []string `json:"distinct,omitempty"`
	// Serial expects that each call began after the one before it had been answered.
	Serial bool `json:"serial,omitempty"`
	// Overlapping names webhooks whose calls must all have been open at one moment.
	Overlapping []string `json:"overlapping,omitempty"`
	// AnsweredLast expects that the client's answer came after the last call was answered.
	AnsweredLast bool `json:"answeredLast,omitempty"`
}

// Calls are expected webhook calls. In a file it is a list (that order, no
// others) or a mapping with one of the fields below.
type Calls struct {
	// InOrder are all the calls in the order in which they began.
	InOrder []Call `json:"inOrder,omitempty"`
	// AnyOrder are all the calls, in any order.
	AnyOrder []Call `json:"anyOrder,omitempty"`
	// Include are calls that must be among those made, in any order.
	Include []Call `json:"include,omitempty"`
	// Exclude are webhooks that must not have been called.
	Exclude []string `json:"exclude,omitempty"`
}

// Call is one expected webhook call. In a file it is the webhook's name, or a mapping.
type Call struct {
	// Webhook is the webhook's name in its configuration. Required.
	Webhook string `json:"webhook"`
	// Phase is mutating or validating.
	Phase string `json:"phase,omitempty"`
	// Review is matched with the AdmissionReview received, Request with its request.
	Review  map[string]any `json:"review,omitempty"`
	Request map[string]any `json:"request,omitempty"`
	// Query, Header, Method, Path and Proto are matched with the HTTP request: each
	// value of Query and Header with the first of that name.
	Query  map[string]any `json:"query,omitempty"`
	Header map[string]any `json:"header,omitempty"`
	Method string         `json:"method,omitempty"`
	Path   any            `json:"path,omitempty"`
	Proto  any            `json:"proto,omitempty"`
	// ServerName is matched with the name that the API server asked for in TLS, absent
	// where it gave none, and Protocols with the list of those that it offered (ALPN).
	ServerName any `json:"serverName,omitempty"`
	Protocols  any `json:"protocols,omitempty"`
	// ClientCertificate is matched with the subject of the certificate that the API
	// server presented, "CN=admission", absent where it presented none.
	ClientCertificate any `json:"clientCertificate,omitempty"`
	// Connection is matched with what tells connections apart, a text to compare with
	// that of another call: "$(steps.ID.calls.0.connection)".
	Connection any `json:"connection,omitempty"`
}

// OneOrMore is written as one value or as a list of them.
type OneOrMore[T comparable] []T
