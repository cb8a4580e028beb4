package hook

// Fault is a named way for a Hook to misbehave. It is a value: scenarios name it,
// and a test of one's own webhook client can use it through Server alone.
type Fault string

// Faults of the answer. The call is received and recorded.
const (
	// NoFault is the zero value.
	NoFault Fault = ""
	// HTTP404 answers 404 with a plain text body.
	HTTP404 Fault = "http-404"
	// HTTP500 answers 500; its body is the AdmissionReview that the Reply makes.
	HTTP500 Fault = "http-500"
	// Redirect answers 302 without a Location.
	Redirect Fault = "redirect"
	// Reset reads the call and closes the connection with a TCP reset.
	Reset Fault = "reset"
	// Hang reads the call and never answers, until the caller gives up.
	Hang Fault = "hang"
	// Slow sends the header at once and the body one byte at a time, too slowly to
	// ever finish, until the caller gives up.
	Slow Fault = "slow"
	// Empty answers 200 with no body.
	Empty Fault = "empty"
	// NotJSON answers 200 with a body that no decoder knows.
	NotJSON Fault = "not-json"
	// NoResponse answers an AdmissionReview without response.
	NoResponse Fault = "no-response"
	// WrongUID answers with another uid than the request's.
	WrongUID Fault = "wrong-uid"
	// WrongKind answers an object of another kind.
	WrongKind Fault = "wrong-kind"
	// WrongVersion answers an AdmissionReview of the other known version (v1beta1
	// for v1, and the other way round).
	WrongVersion Fault = "wrong-version"
	// PatchWithoutType answers a patch without patchType.
	PatchWithoutType Fault = "patch-without-type"
	// UnknownPatchType answers a patch with a patchType that does not exist.
	UnknownPatchType Fault = "unknown-patch-type"
	// MalformedPatch answers a patch that is no JSON Patch document.
	MalformedPatch Fault = "malformed-patch"
	// InapplicablePatch answers a well-formed patch that cannot be applied: it
	// removes what is not there.
	InapplicablePatch Fault = "inapplicable-patch"
	// Oversize answers a body larger than any answer needs: 8 MiB of white space
	// within an AdmissionReview, sent as it is made.
	Oversize Fault = "oversize"
)

// Faults of the connection. They hold for every call of a Hook, so a Script may
// name one in its only Reply; no call is recorded.
const (
	// Refused is a port that nobody listens on.
	Refused Fault = "refused"
	// TLSWrongCA gives the caller a CA bundle that did not sign the certificate.
	TLSWrongCA Fault = "tls-wrong-ca"
	// TLSExpired serves a certificate that is no longer valid.
	TLSExpired Fault = "tls-expired"
	// TLSWrongName serves a certificate for another name.
	TLSWrongName Fault = "tls-wrong-name"
	// TLSHang accepts the connection and never says anything, so that the TLS
	// handshake does not end, until the caller gives up.
	TLSHang Fault = "tls-hang"
)

// Faults returns every Fault but NoFault.
func Faults() []Fault {
	return []Fault{
		HTTP404, HTTP500, Redirect, Refused, Reset, Hang, Slow, Empty, NotJSON, NoResponse,
		WrongUID, WrongKind, WrongVersion, PatchWithoutType, UnknownPatchType, MalformedPatch,
		InapplicablePatch, Oversize, TLSWrongCA, TLSExpired, TLSWrongName, TLSHang,
	}
}

// OfConnection reports whether the Fault is one of the connection, which holds
// for every call of a Hook.
func (f Fault) OfConnection() bool {
	switch f {
	case Refused, TLSWrongCA, TLSExpired, TLSWrongName, TLSHang:
		return true
	default:
		return false
	}
}
