package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/suggest"
	"golang.org/x/net/http/httpguts"
)

// InvalidField describes an invalid field of a Script.
type InvalidField struct { //nolint:errname // the name reads well where it is used: errors.As(err, &invalidField)
	// Reply is the index of the Reply in Script.Replies.
	Reply int
	// Field is the name of the field in JSON: "fault", "http.code".
	Field string
	// Problem is what is wrong and what was expected.
	Problem string
}

// Error names the reply, the field and the problem.
func (e *InvalidField) Error() string {
	return fmt.Sprintf("check script: reply %d: %s: %s", e.Reply+1, e.Field, e.Problem)
}

// Validate checks whether a Server can use the Script. The error joins one
// *InvalidField for each problem. The zero value is valid. The answers themselves are
// not checked: a Script may answer nonsense.
func (s Script) Validate() error {
	var problems []error
	for i, reply := range s.Replies {
		for _, problem := range reply.problems() {
			problem.Reply = i
			problems = append(problems, problem)
		}
		if reply.Fault.OfConnection() && len(s.Replies) > 1 {
			problems = append(problems, &InvalidField{Reply: i, Field: "fault", Problem: fmt.Sprintf(
				"%q applies to every call of a hook, so it must be in the only reply; the script has %d replies",
				reply.Fault, len(s.Replies))})
		}
	}
	return errors.Join(problems...)
}

// connectionFault returns the Fault of the connection, or NoFault.
func (s Script) connectionFault() Fault {
	if len(s.Replies) == 1 && s.Replies[0].Fault.OfConnection() {
		return s.Replies[0].Fault
	}
	return NoFault
}

func (r Reply) problems() []*InvalidField {
	problems := append(r.faultProblems(), r.waitProblems()...)
	problems = append(problems, r.httpProblems()...)
	for _, part := range []struct {
		field string
		value any
	}{{"status", r.Status}, {"patch", r.Patch}, {"review", r.Review}} {
		if _, err := json.Marshal(part.value); err != nil {
			problems = append(problems, &InvalidField{Field: part.field,
				Problem: fmt.Sprintf("cannot be encoded as JSON: %v", err)})
		}
	}
	return problems
}

func (r Reply) faultProblems() []*InvalidField {
	if r.Fault != NoFault && !slices.Contains(Faults(), r.Fault) {
		return []*InvalidField{{Field: "fault", Problem: fmt.Sprintf("unknown fault %q%s", r.Fault, suggestion(r.Fault, Faults()))}}
	}
	fields := r.fields()
	if extra := slices.IndexFunc(fields, func(field replyField) bool { return field.set }); r.Fault.OfConnection() && extra >= 0 {
		return []*InvalidField{{Field: fields[extra].name, Problem: fmt.Sprintf(
			"has no effect with fault %q, which prevents every call; remove it", r.Fault)}}
	}
	if (r.Fault == Reset || r.Fault == Hang) && r.HTTP != nil {
		return []*InvalidField{{Field: "http", Problem: fmt.Sprintf(
			"has no effect with fault %q, which sends no answer; remove it", r.Fault)}}
	}
	return nil
}

// replyField is a field of a Reply besides Fault.
type replyField struct {
	name string
	set  bool
	// ofAnswer is true if the field is a part of the AdmissionReview.
	ofAnswer bool
}

func (r Reply) fields() []replyField {
	return []replyField{
		{"allowed", r.Allowed != nil, true}, {"status", r.Status != nil, true}, {"patch", r.Patch != nil, true},
		{"patchType", r.PatchType != nil, true}, {"warnings", r.Warnings != nil, true},
		{"auditAnnotations", r.AuditAnnotations != nil, true}, {"review", r.Review != nil, true},
		{"http", r.HTTP != nil, false}, {"delay", r.Delay != 0, false}, {"barrier", r.Barrier != "", false},
		{"barrierSize", r.BarrierSize != 0, false}, {"meanwhile", r.Meanwhile != nil, false},
	}
}

func (r Reply) waitProblems() []*InvalidField {
	var problems []*InvalidField
	if r.Delay < 0 {
		problems = append(problems, &InvalidField{Field: "delay",
			Problem: fmt.Sprintf("got %s, want 0 or more", r.Delay)})
	}
	if r.Barrier != "" && r.BarrierSize < 2 {
		problems = append(problems, &InvalidField{Field: "barrierSize", Problem: fmt.Sprintf(
			"got %d, want the number of calls that wait at barrier %q, 2 or more", r.BarrierSize, r.Barrier)})
	}
	if r.Barrier == "" && r.BarrierSize != 0 {
		problems = append(problems, &InvalidField{Field: "barrier", Problem: fmt.Sprintf(
			"is empty, want the name of the barrier for barrierSize %d", r.BarrierSize)})
	}
	return problems
}

func (r Reply) httpProblems() []*InvalidField {
	if r.HTTP == nil {
		return nil
	}
	var problems []*InvalidField
	if code := r.HTTP.Code; code != 0 && (code < 200 || code > 999) {
		problems = append(problems, &InvalidField{Field: "http.code",
			Problem: fmt.Sprintf("got %d, want a final status code, 200 to 999", code)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.HTTP.Header)) {
		value := r.HTTP.Header[name]
		if !httpguts.ValidHeaderFieldName(name) {
			problems = append(problems, &InvalidField{Field: "http.header",
				Problem: fmt.Sprintf("%q is not a header name", name)})
		} else if !httpguts.ValidHeaderFieldValue(value) {
			problems = append(problems, &InvalidField{Field: "http.header",
				Problem: fmt.Sprintf("%s: %q is not a header value", name, value)})
		}
	}
	return problems
}

// suggestion returns which of the values was probably meant, or a list of them if none
// is similar.
func suggestion[S ~string](got S, values []S) string {
	names := make([]string, len(values))
	for i, each := range values {
		names[i] = string(each)
	}
	if nearest := suggest.DidYouMean(string(got), names); nearest != "" || len(names) == 0 {
		return nearest
	}
	return fmt.Sprintf(", want one of %s", strings.Join(names, ", "))
}
