package hook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// answer is an HTTP answer as it is sent.
type answer struct {
	code   int
	header http.Header // a name without values is not sent, not even by default
	body   []byte
	text   string // for framework.Call.Answer
	fault  Fault
	// response is the response of the AdmissionReview in body, or nil.
	response map[string]any
}

// answer returns the HTTP response of the Reply to a review.
func (r Reply) answer(review map[string]any) (answer, error) {
	reply, err := r.review(review)
	if err != nil {
		return answer{}, err
	}
	misbehave(reply, r.Fault)
	body, err := json.Marshal(reply)
	if err != nil {
		return answer{}, fmt.Errorf("encode AdmissionReview: %w", err)
	}
	made := answer{
		code: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}},
		body: body, text: r.describe(reply), fault: r.Fault,
	}
	made.misbehave()
	made.replace(r.HTTP)
	made.response = responseIn(made.body)
	return made, nil
}

// replace replaces parts of the answer.
func (a *answer) replace(with *HTTP) {
	if with == nil {
		return
	}
	if with.Code != 0 {
		a.code = with.Code
	}
	for name, value := range with.Header {
		a.header.Del(name)
		if name = http.CanonicalHeaderKey(name); value == "" {
			a.header[name] = nil
		} else {
			a.header[name] = []string{value}
		}
	}
	if with.Body != nil {
		a.body = []byte(*with.Body)
	}
}

// responseIn returns the response of an AdmissionReview, with its patch as a list of operations, or
// nil.
func responseIn(body []byte) map[string]any {
	var review map[string]any
	if utiljson.Unmarshal(body, &review) != nil {
		return nil
	}
	response, _ := review["response"].(map[string]any)
	if patch, ok := operationsOf(response); ok {
		response["patch"] = patch
	}
	return response
}

// operationsOf returns the operations of the patch in a response, decoded or not, if it is a list.
func operationsOf(response map[string]any) ([]any, bool) {
	if operations, ok := response["patch"].([]any); ok {
		return operations, true
	}
	text, _ := response["patch"].(string)
	document, err := base64.StdEncoding.DecodeString(text)
	var operations []any
	if err != nil || utiljson.Unmarshal(document, &operations) != nil {
		return nil, false
	}
	return operations, operations != nil
}

// review returns the AdmissionReview of the Reply to a received one, before any Fault.
func (r Reply) review(received map[string]any) (map[string]any, error) {
	response := map[string]any{"allowed": r.Status == nil}
	if request, ok := received["request"].(map[string]any); ok {
		response["uid"] = request["uid"]
	}
	if r.Allowed != nil {
		response["allowed"] = *r.Allowed
	}
	if r.Status != nil {
		response["status"] = r.Status
	}
	if r.Patch != nil {
		patch, err := json.Marshal(r.Patch)
		if err != nil {
			return nil, fmt.Errorf("encode patch: %w", err)
		}
		setPatch(response, string(patch))
	}
	if r.PatchType != nil {
		response["patchType"] = *r.PatchType
	}
	if r.Warnings != nil {
		response["warnings"] = r.Warnings
	}
	if r.AuditAnnotations != nil {
		response["auditAnnotations"] = r.AuditAnnotations
	}
	if isImageReview(received) {
		return imageReview(received, r, response), nil
	}
	review := map[string]any{"apiVersion": received["apiVersion"], "kind": "AdmissionReview", "response": response}
	if r.Review == nil {
		return review, nil
	}
	return mergePatch(review, r.Review)
}

func setPatch(response map[string]any, document string) {
	response["patch"] = base64.StdEncoding.EncodeToString([]byte(document))
	response["patchType"] = "JSONPatch"
}

// describe returns a short description of an answer.
func (r Reply) describe(review map[string]any) string {
	if r.Fault != NoFault {
		return string(r.Fault)
	}
	if r.HTTP != nil && (r.HTTP.Body != nil || r.HTTP.Code != 0 && r.HTTP.Code != http.StatusOK) {
		return fmt.Sprintf("HTTP %d", max(r.HTTP.Code, http.StatusOK))
	}
	response, _ := review["response"].(map[string]any)
	return describeResponse(response)
}

// describeResponse returns a short description of the response of an AdmissionReview.
func describeResponse(response map[string]any) string {
	text := "no verdict"
	switch response["allowed"] {
	case true:
		text = "allowed"
	case false:
		text = "denied"
	}
	if response["patch"] == nil {
		return text
	}
	operations, ok := operationsOf(response)
	switch {
	case !ok:
		return text + ", patch that is not a list"
	case len(operations) == 1:
		return text + ", patch (1 operation)"
	default:
		return fmt.Sprintf("%s, patch (%d operations)", text, len(operations))
	}
}

// send sends the answer, with its Fault if it has one that concerns sending.
func (v *visit) send(a answer) {
	switch a.fault {
	case Reset:
		v.finish(a.text)
		v.drop(true)
	case Hang:
		v.owner.setAnswer(v.call, a.text)
		select {
		case <-v.ctx.Done():
		case <-v.owner.gone:
		}
		v.finish(a.text)
		v.drop(false)
	case Slow:
		v.sendSlowly(a)
	case Oversize:
		begin := min(1, len(a.body)) // inside the outermost brace
		v.owner.setAnswer(v.call, a.text)
		a.body = slices.Insert(a.body, begin, bytes.Repeat([]byte(" "), oversize)...)
		v.write(a)
		v.finish(a.text)
	default:
		v.owner.setResponse(v.call, a)
		v.finish(a.text)
		v.write(a)
	}
}

// oversize is how many bytes of white space an Oversize answer has.
const oversize = 8 << 20

func (v *visit) write(a answer) {
	v.writeHeader(a)
	_, _ = v.writer.Write(a.body) // a client that has disconnected needs no answer
}

func (v *visit) writeHeader(a answer) {
	maps.Copy(v.writer.Header(), a.header) // nil keeps net/http from filling a header in
	v.writer.WriteHeader(a.code)
}

// slowness is the time between two bytes of a Slow answer. An answer has more than a
// hundred bytes, so it takes longer than the 30 s that an API server waits at most.
const slowness = 400 * time.Millisecond

// sendSlowly never finishes: white space follows the body.
func (v *visit) sendSlowly(a answer) {
	v.owner.setAnswer(v.call, a.text)
	defer v.drop(false)
	defer v.finish(a.text)
	v.writeHeader(a)
	flush := http.NewResponseController(v.writer).Flush
	ticker := time.NewTicker(slowness)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-v.ctx.Done():
			return
		case <-v.owner.gone:
			return
		}
		next := []byte{' '}
		if i < len(a.body) {
			next = a.body[i : i+1]
		}
		if _, err := v.writer.Write(next); err != nil {
			return
		}
	}
}
