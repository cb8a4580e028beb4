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

// ErrNotServed marks a Request, or a manifest, of a kind or subresource that the API server
// does not serve: the error is a [NotServedError]. One that seems to be misspelt is another
// error.
var ErrNotServed = errors.New("the API server does not serve it")

// NotServedError is an [ErrNotServed].
type NotServedError struct {
	// Name is what the API server does not serve: the version and kind, "apps/v1 Deployment",
	// or the version and the subresource, "v1 pods/exec".
	Name string
}

// Error names what is not served.
func (e *NotServedError) Error() string { return "the API server does not serve " + e.Name }

// Is reports whether the target is ErrNotServed.
func (*NotServedError) Is(target error) bool { return target == ErrNotServed }

// ErrNarrowed marks a Request that a Target does not send, or a manifest that it does not install,
// because what keeps scenarios apart makes it meaningless: a webhook or policy of the scenario
// could not decide about it, for instance.
var ErrNarrowed = errors.New("the scenario is narrowed to its own namespaces and names")

// ErrForeign marks a Request that a Target refuses to send because it could change or
// read what belongs to other clients of the cluster.
var ErrForeign = errors.New("it could affect other clients of the cluster")

// ManifestError is the error of one of several manifests.
type ManifestError struct {
	// Index is that of the manifest.
	Index int
	// Field is the path of the field that is wrong, "spec.rules[0]", if that is known.
	Field string
	// Err is the error.
	Err error
}

// Error returns the text of Err.
func (e *ManifestError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ManifestError) Unwrap() error { return e.Err }
