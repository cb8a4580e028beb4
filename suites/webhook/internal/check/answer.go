package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/internal/review"
)

// Answer is what a webhook answers to an AdmissionReview.
type Answer struct {
	// Err is why there is no HTTP response: no answer in time, a panic, a reset connection.
	Err error
	// Status is the HTTP status.
	Status int
	// Problem is why the body is not an AdmissionReview with a response. Empty means that it is.
	Problem string
	// APIVersion and Kind are of the review.
	APIVersion, Kind string
	// Response is the response of the review.
	Response Response
}

// Response is the response of an AdmissionReview, as the webhook wrote it.
type Response struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           Status            `json:"status"`
	Patch            []byte            `json:"patch"`
	PatchType        *string           `json:"patchType"`
	Warnings         []string          `json:"warnings"`
	AuditAnnotations map[string]string `json:"auditAnnotations"`
}

// Status is the status of a denial.
type Status struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// answerOf reads a reply.
func answerOf(r reply) Answer {
	a := Answer{Err: r.err, Status: r.status}
	if r.err != nil {
		return a
	}
	var body struct {
		APIVersion string    `json:"apiVersion"`
		Kind       string    `json:"kind"`
		Response   *Response `json:"response"`
	}
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	err := decoder.Decode(&body)
	switch {
	case r.status != http.StatusOK:
		a.Problem = fmt.Sprintf("HTTP status %d, body %q", r.status, short(r.body))
	case err != nil:
		a.Problem = fmt.Sprintf("body %q is not JSON: %v", short(r.body), err)
	case body.Response == nil:
		a.Problem = fmt.Sprintf("body %q has no response", short(r.body))
	default:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			a.Problem = "the body has more than one JSON document"
		}
	}
	a.APIVersion, a.Kind = body.APIVersion, body.Kind
	if body.Response != nil {
		a.Response = *body.Response
	}
	return a
}

// short returns the beginning of a body.
func short(body []byte) string {
	const most = 120
	if len(body) > most {
		return string(body[:most]) + "…"
	}
	return string(body)
}

// NoDecision returns why the answer is no decision. Empty means that it is one.
func (a Answer) NoDecision() string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return a.Problem
}

// Verdict describes the decision: "allowed", or "denied with 403 (message)".
func (a Answer) Verdict() string {
	switch {
	case a.NoDecision() != "":
		return "no decision (" + a.NoDecision() + ")"
	case a.Response.Allowed:
		return "allowed"
	default:
		return fmt.Sprintf("denied with code %d (%s)", a.Response.Status.Code, a.Response.Status.Message)
	}
}

// Operation is an operation of a JSON patch.
type Operation struct {
	Op, Path, From string
	Value          json.RawMessage
}

// Operations returns the operations of the patch.
func (a Answer) Operations() ([]Operation, error) {
	if len(a.Response.Patch) == 0 {
		return nil, nil
	}
	var operations []Operation
	if err := json.Unmarshal(a.Response.Patch, &operations); err != nil {
		return nil, fmt.Errorf("the patch %q is not a JSON array of operations (RFC 6902): %w", short(a.Response.Patch), err)
	}
	return operations, nil
}

// applyPatch applies a JSON patch as an API server does.
func applyPatch(fields map[string]any, patch []byte) (map[string]any, error) {
	if len(patch) == 0 {
		return fields, nil
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("decode the patch %q: %w", short(patch), err)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	changed, err := decoded.Apply(data)
	if err != nil {
		return nil, fmt.Errorf("apply the patch %s: %w", short(patch), err)
	}
	var result map[string]any
	if err := utiljson.Unmarshal(changed, &result); err != nil {
		return nil, fmt.Errorf("decode the patched object: %w", err)
	}
	return result, nil
}

// CanApply returns why the patch of an answer cannot be applied to an object. A patch that is not a JSON array of
// operations is another rule's.
func (t *T) CanApply(object map[string]any, a Answer) error {
	if _, err := a.Operations(); err != nil || object == nil {
		return nil //nolint:nilerr // WH-PROTO-4 reports it
	}
	patched, err := applyPatch(object, a.Response.Patch)
	if err != nil {
		return err
	}
	if _, err := review.Decoded(patched); err != nil {
		return fmt.Errorf("decode the patched object: %w", err)
	}
	return nil
}
