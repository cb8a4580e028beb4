package framework

import "errors"

// ErrNoResponse marks a Request without a response: the connection was refused, or broke before the
// response was read. The server may have carried out the Request or not. A Request that the API
// server refused is not an error but a Result.
var ErrNoResponse = errors.New("no response from the API server")

// ErrTimeout marks a wait that reached its time limit. The expected state may still come later, so
// a timeout proves nothing about the server.
var ErrTimeout = errors.New("timed out")

// ErrFieldNotSupported marks a Request with a field that the Target cannot use. The text of the
// error names the field.
var ErrFieldNotSupported = errors.New("field is not supported by this target")

// ErrNotServed marks a Request or manifest whose kind or subresource the API server does not serve.
// The error is a [NotServedError]. A kind or subresource that seems to be misspelt gives another
// error.
var ErrNotServed = errors.New("the API server does not serve the kind")

// NotServedError is the error for a kind or subresource that the API server does not serve. It
// matches [ErrNotServed] in errors.Is.
type NotServedError struct {
	// Name is the group, version and kind ("apps/v1 Deployment"), or the version and subresource
	// ("v1 pods/exec").
	Name string
}

// Error names what is not served.
func (e *NotServedError) Error() string { return "the API server does not serve " + e.Name }

// Is reports whether the target is ErrNotServed.
func (*NotServedError) Is(target error) bool { return target == ErrNotServed }

// ErrForeign marks a Request that a Target does not send, because the Request could read or change
// objects of other clients of the cluster.
var ErrForeign = errors.New("the scenario could affect other clients of the cluster")

// ManifestError is an error about one manifest of a list.
type ManifestError struct {
	// Index is the index of the manifest in the list, from 0.
	Index int
	// Field is the path of the wrong field, "spec.rules[0]". Empty if it is not known.
	Field string
	// Err is the cause.
	Err error
}

// Error returns the text of Err.
func (e *ManifestError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ManifestError) Unwrap() error { return e.Err }
