package scenario

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/match"
)

// compare checks the expected values in the structs that were decoded.
func (d *decoder) compare() {
	compared := comparisons()
	for _, set := range d.Set {
		fields := compared[reflect.TypeOf(set.Struct).Elem()]
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if value := set.Get(name); value != nil {
				d.operators(value, set.At(name))
				d.emptyFields(value, set.At(name))
				d.assumed(value, set.At(name), fields[name])
			}
		}
	}
}

// operators checks the operators in an expected value.
func (d *decoder) operators(n *document.Node, where document.Path) {
	var wrong *match.OperatorError
	if errors.As(match.ValidateOperators(n.Plain()), &wrong) {
		holder := n.Find(wrong.Path...)
		if _, key := holder.Step(wrong.Operator); key != nil {
			holder = key
		}
		hint := ""
		if wrong.Hint != "" {
			hint = fmt.Sprintf("did you mean %q?", wrong.Hint)
		}
		d.Fail(holder, fmt.Sprintf("operator %s in %s: %s", wrong.Operator, where, wrong.Problem), hint)
	}
}

// emptyFields checks that no field of an expected value is an empty map, which every map matches. Items of lists and
// arguments of operators can be empty.
func (d *decoder) emptyFields(n *document.Node, where document.Path) {
	for _, entry := range n.Fields {
		here := where.Field(entry.Name)
		if entry.Value.Kind == document.KindMapping && len(entry.Value.Fields) == 0 && !match.LooksLikeOperator(entry.Name) {
			d.Fail(entry.Value, fmt.Sprintf("%s is {}, which every map matches; expected what it must have", here),
				"write {$exact: {}} for an empty map, {$absent: true} for no such field, or {$absent: false} for any value")
		}
		if !slices.Contains([]string{"$exact", "$json", "$jwt", "$entries"}, entry.Name) { // {} is an empty map there
			d.emptyFields(entry.Value, here)
		}
	}
	for i, item := range n.Items {
		d.emptyFields(item, where.Item(i))
	}
}

// assumed checks the fields of an expected value whose names can be wrong without a difference, such as a
// field that must be absent: actual values must have them.
func (d *decoder) assumed(n *document.Node, where document.Path, with compared) {
	if with.typ == nil || match.ValidateOperators(n.Plain()) != nil {
		return
	}
	for _, one := range match.Assumptions(n.Plain()) {
		last := len(one.Written) - 1
		name := fmt.Sprint(one.Written[last])
		missing := kinds.MissingInType(with.typ, one.Field)
		if with.typ == reflect.TypeFor[http.Header]() && len(one.Field) == 1 && !slices.Contains(headers(), textproto.CanonicalMIMEHeaderKey(name)) {
			missing = &kinds.Missing{Names: headers()}
		}
		if _, key := n.Find(one.Written[:last]...).Step(name); key != nil && missing != nil && missing.Index == len(one.Field)-1 {
			d.Fail(key, fmt.Sprintf("unknown field %s in %s; expected a field of %s, because the expectation holds without such a field", document.Quote(name), where, with.what),
				document.SuggestOrList(name, missing.Names, "it has no fields"))
		}
	}
}

// review is what an API server sends to a webhook: an AdmissionReview, or an ImageReview.
type review struct {
	admissionv1.AdmissionReview `json:",inline"`
	Spec                        imagepolicyv1alpha1.ImageReviewSpec   `json:"spec"`
	Status                      imagepolicyv1alpha1.ImageReviewStatus `json:"status"`
}

// query is the query of a call.
type query struct {
	Timeout any `json:"timeout"`
}

// response is the response of a webhook. Its patch is a list of operations.
type response struct {
	admissionv1.AdmissionResponse `json:",inline"`
	Patch                         []any `json:"patch"`
}

// auditEvent is what an expectation of an audit event is compared with.
type auditEvent struct {
	Level          string            `json:"level"`
	Annotations    map[string]string `json:"annotations"`
	RequestObject  any               `json:"requestObject"`
	ResponseObject any               `json:"responseObject"`
}

// refusal is what the expectation of a refusal by a plugin is compared with.
type refusal struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// sample is a sample of a metric.
type sample struct {
	Labels  map[string]string `json:"labels"`
	Value   float64           `json:"value"`
	Buckets []float64         `json:"buckets"`
}

// headers are the HTTP headers of calls that an API server can send, also those by which a proxy or a
// client says who the user is.
func headers() []string {
	return []string{
		"Accept", "Accept-Encoding", "Authorization", "Baggage", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie",
		"Forwarded", "Impersonate-Group", "Impersonate-Uid", "Impersonate-User", "Traceparent", "Tracestate", "Transfer-Encoding",
		"Upgrade", "User-Agent", "Via", "X-Forwarded-For", "X-Remote-Group", "X-Remote-Uid", "X-Remote-User", "X-Request-Id",
	}
}
