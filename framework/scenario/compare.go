package scenario

import (
	"errors"
	"fmt"
	"maps"
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
	for _, set := range d.Set {
		fields := d.format.comparisons[reflect.TypeOf(set.Struct).Elem()]
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if value := set.Written(name); value != nil && value.Kind != document.KindRefused {
				d.comparedWith(fields[name], value, set.At(name))
			}
		}
	}
}

// comparedWith checks an expected value.
func (d *decoder) comparedWith(c compared, n *document.Node, where *document.Path) {
	d.expected(n, where)
	if c.always {
		d.anyValue(n, where)
	}
	if c.natural {
		d.anyNumber(n, where)
	}
	switch {
	case c.typ != nil:
		d.fields(n, where, c)
	case c.keys != nil:
		d.keys(n, where, c)
	}
}

// operators checks the operators in an expected value.
func (d *decoder) operators(n *document.Node, where *document.Path) {
	if !hasOperator(n) {
		return
	}
	err := match.ValidateOperators(n.Plain())
	if err == nil {
		return
	}
	var wrong *match.OperatorError
	if !errors.As(err, &wrong) {
		d.Fail(n, fmt.Sprintf("%s cannot be matched: %v", where, err), "")
		return
	}
	holder := n.Find(wrong.Path)
	for _, field := range holder.Fields {
		if field.Name == wrong.Operator {
			holder = field.Key
			break
		}
	}
	if wrong.Hint != "" {
		d.Fail(holder, fmt.Sprintf("unknown operator %s in %s; expected an operator of expectations", wrong.Operator, where),
			fmt.Sprintf("did you mean %q?", wrong.Hint))
		return
	}
	d.Fail(holder, fmt.Sprintf("operator %s in %s: %s", wrong.Operator, where, wrong.Problem), "")
}

// expected checks an expected value: its operators, and that no field of it is an empty map, which
// every map matches. Items of lists and arguments of operators can be empty.
func (d *decoder) expected(n *document.Node, where *document.Path) {
	d.operators(n, where)
	d.emptyFields(n, where)
}

func (d *decoder) emptyFields(n *document.Node, where *document.Path) {
	for _, entry := range n.Fields {
		here := where.Field(entry.Name)
		switch {
		case match.LooksLikeOperator(entry.Name):
			if entry.Name == "$exact" || entry.Name == "$json" || entry.Name == "$entries" {
				continue // {} is an empty map there
			}
		case entry.Value.Kind == document.KindMapping && len(entry.Value.Fields) == 0:
			d.Fail(entry.Value, fmt.Sprintf("%s is {}, which every map matches; expected what it must have", here),
				"write {$exact: {}} for an empty map, {$absent: true} for no such field, or {$absent: false} for any value")
		}
		d.emptyFields(entry.Value, here)
	}
	for i, item := range n.Items {
		d.emptyFields(item, where.Item(i))
	}
}

// fields checks the fields of an expected value whose names can be wrong without a difference, such as a
// field that must be absent: actual values must have them.
func (d *decoder) fields(n *document.Node, where *document.Path, with compared) {
	d.assumed(n, func(one match.Assumption, at document.Field) {
		if missing := kinds.MissingInType(with.typ, one.Field); missing != nil && missing.Index == len(one.Field)-1 {
			d.Fail(at.Key, fmt.Sprintf("unknown field %s in %s; expected a field of %s, because the expectation holds without such a field", document.Quote(at.Name), where, with.what),
				document.SuggestOrList(at.Name, missing.Names, "it has no fields"))
		}
	})
}

// keys checks the keys of an expected map like fields.
func (d *decoder) keys(n *document.Node, where *document.Path, with compared) {
	d.assumed(n, func(one match.Assumption, at document.Field) {
		if len(one.Field) == 1 && !slices.Contains(with.keys, with.canonical(at.Name)) {
			d.Fail(at.Key, fmt.Sprintf("unknown %s %s in %s; expected one that an API server sends, because the expectation holds without it", with.what, document.Quote(at.Name), where),
				document.SuggestOrList(at.Name, with.keys, ""))
		}
	})
}

// assumed calls a function for each assumption of a valid expectation, with the field in the file.
func (d *decoder) assumed(n *document.Node, do func(match.Assumption, document.Field)) {
	if match.ValidateOperators(n.Plain()) != nil {
		return // operators reports it
	}
	for _, one := range match.Assumptions(n.Plain()) {
		last := len(one.Written) - 1
		holder, name := n.Find(one.Written[:last]), one.Written[last]
		for _, field := range holder.Fields {
			if field.Name == name {
				do(one, field)
			}
		}
	}
}

// hasOperator reports whether the name of a field in a value is meant as an operator.
func hasOperator(n *document.Node) bool {
	for _, field := range n.Fields {
		if match.LooksLikeOperator(field.Name) || hasOperator(field.Value) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, hasOperator)
}

// anyValue reports the expectation of any value for what always has one.
func (d *decoder) anyValue(n *document.Node, where *document.Path) {
	not := n.Get("$not")
	if n.Get("$absent").Plain() == any(false) || not != nil && (not.Kind == document.KindNull || not.Get("$absent").Plain() == true) {
		d.Fail(n, fmt.Sprintf("%s always has a value, so that every result meets this; expected a value", where), "remove the field, or say which value is expected")
	}
}

// anyNumber reports the expectation of any number for what is never negative.
func (d *decoder) anyNumber(n *document.Node, where *document.Path) {
	bounds := n.Get("$number")
	least, ok := bounds.Get("atLeast").Plain().(int64)
	if ok && least <= 0 && !bounds.Has("atMost") {
		d.Fail(n, fmt.Sprintf("%s is never negative, so that every number meets this; expected a limit", where), `write "atMost:", or a higher "atLeast:"`)
	}
}

// review is what an API server sends to a webhook: an AdmissionReview, or an ImageReview.
type review struct {
	admissionv1.AdmissionReview `json:",inline"`
	Spec                        imagepolicyv1alpha1.ImageReviewSpec   `json:"spec"`
	Status                      imagepolicyv1alpha1.ImageReviewStatus `json:"status"`
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
