package hook

import "net/http"

// The patch documents of Faults.
const (
	harmlessPatch     = `[]`
	malformedPatch    = `{"this": "is an object, and a JSON Patch is a list"}`
	inapplicablePatch = `[{"op": "remove", "path": "/admissiontestNoSuchField"}]`
)

// misbehave applies a Fault to an AdmissionReview.
func misbehave(review map[string]any, fault Fault) {
	switch fault {
	case WrongKind:
		review["kind"] = "NotAnAdmissionReview"
	case WrongVersion:
		if review["apiVersion"] == reviewV1 {
			review["apiVersion"] = reviewV1beta1
		} else {
			review["apiVersion"] = reviewV1
		}
	case NoResponse:
		delete(review, "response")
	}
	if response, ok := review["response"].(map[string]any); ok {
		misbehaveInResponse(response, fault)
	}
}

func misbehaveInResponse(response map[string]any, fault Fault) {
	if response["patch"] == nil && (fault == PatchWithoutType || fault == UnknownPatchType) {
		setPatch(response, harmlessPatch)
	}
	switch fault {
	case WrongUID:
		response["uid"] = "00000000-0000-0000-0000-000000000000"
	case PatchWithoutType:
		delete(response, "patchType")
	case UnknownPatchType:
		response["patchType"] = "NoSuchPatchType"
	case MalformedPatch:
		setPatch(response, malformedPatch)
	case InapplicablePatch:
		setPatch(response, inapplicablePatch)
	}
}

// misbehave applies a Fault to the HTTP response.
func (a *answer) misbehave() {
	switch a.fault {
	case HTTP404:
		a.code = http.StatusNotFound
		a.header.Set("Content-Type", "text/plain; charset=utf-8")
		a.body = []byte("404 page not found\n")
	case HTTP500:
		a.code = http.StatusInternalServerError
	case Redirect:
		a.code = http.StatusFound
	case Empty:
		a.body = nil
	case NotJSON:
		a.body = []byte("\x01this is not an AdmissionReview\n")
	}
}
