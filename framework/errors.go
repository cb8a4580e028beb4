package framework

import "errors"

// ErrNoResponse marks an error after which it is not known what the server did: the
// connection was refused, or broke before the response was read. A request that the
// API server refused is not an error: it is a Result.
var ErrNoResponse = errors.New("no response from the API server")

// ErrTimeout marks a wait that reached its limit. What it waited for was not
// observed, and nothing can be concluded from that.
var ErrTimeout = errors.New("timed out")

// ErrFieldNotSupported marks a Request that sets a field which the Target cannot
// use. The error names the field.
var ErrFieldNotSupported = errors.New("field is not supported by this target")

// ErrForeign marks a Request that a Target refuses to send because it could change or
// read what belongs to other clients of the cluster.
var ErrForeign = errors.New("it could affect other clients of the cluster")
