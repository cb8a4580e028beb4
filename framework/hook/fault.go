package hook

import "slices"

// Fault is a named way in which a Hook misbehaves.
type Fault string

// Faults of the answer. The Hook receives and records the call.
const (
	// NoFault is the zero value.
	NoFault Fault = ""
	// HTTP404 answers 404 with a plain text body.
	HTTP404 Fault = "http-404"
	// HTTP500 answers 500 with the AdmissionReview of the Reply as body.
	HTTP500 Fault = "http-500"
	// Redirect answers 302 without a Location.
	Redirect Fault = "redirect"
	// Reset reads the call and closes the connection with a TCP reset.
	Reset Fault = "reset"
	// Hang reads the call and does not answer until the client disconnects.
	Hang Fault = "hang"
	// Slow sends the header at once and then the body one byte at a time, too slowly to
	// finish, until the client disconnects.
	Slow Fault = "slow"
	// Empty answers 200 with no body.
	Empty Fault = "empty"
	// NotJSON answers 200 with a body that is not JSON.
	NotJSON Fault = "not-json"
	// NoResponse answers an AdmissionReview without a response.
	NoResponse Fault = "no-response"
	// WrongUID answers with another uid than the request's.
	WrongUID Fault = "wrong-uid"
	// WrongKind answers an object of another kind.
	WrongKind Fault = "wrong-kind"
	// WrongVersion answers an AdmissionReview of the other version: v1beta1 for v1, v1 for
	// v1beta1.
	WrongVersion Fault = "wrong-version"
	// PatchWithoutType answers a patch without patchType.
	PatchWithoutType Fault = "patch-without-type"
	// UnknownPatchType answers a patch with a patchType that does not exist.
	UnknownPatchType Fault = "unknown-patch-type"
	// MalformedPatch answers a patch that is not a JSON Patch document.
	MalformedPatch Fault = "malformed-patch"
	// InapplicablePatch answers a well-formed patch that cannot be applied: it removes a
	// field that does not exist.
	InapplicablePatch Fault = "inapplicable-patch"
	// Oversize answers an AdmissionReview with 8 MiB of white space in it.
	Oversize Fault = "oversize"
)

// Faults of the connection. They apply to every call of a Hook, so a Script can have
// one only in its only Reply. No call is recorded.
const (
	// Refused refuses the TCP connection. Elsewhere than on Linux, another process could get the port.
	Refused Fault = "refused"
	// TLSWrongCA returns a CABundle that did not sign the certificate.
	TLSWrongCA Fault = "tls-wrong-ca"
	// TLSExpired serves a certificate that has expired.
	TLSExpired Fault = "tls-expired"
	// TLSWrongName serves a certificate for another name.
	TLSWrongName Fault = "tls-wrong-name"
	// TLSHang accepts the connection and sends nothing: the TLS handshake does not end
	// until the client disconnects.
	TLSHang Fault = "tls-hang"
)

// Faults returns all Faults except NoFault.
func Faults() []Fault {
	return []Fault{
		HTTP404, HTTP500, Redirect, Refused, Reset, Hang, Slow, Empty, NotJSON, NoResponse,
		WrongUID, WrongKind, WrongVersion, PatchWithoutType, UnknownPatchType, MalformedPatch,
		InapplicablePatch, Oversize, TLSWrongCA, TLSExpired, TLSWrongName, TLSHang,
	}
}

// OfConnection reports whether this is a Fault of the connection, which applies to
// every call of a Hook.
func (f Fault) OfConnection() bool {
	return slices.Contains([]Fault{Refused, TLSWrongCA, TLSExpired, TLSWrongName, TLSHang}, f)
}
