package hook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/suggest"
	"golang.org/x/net/http/httpguts"
)

// Validate checks whether a Server can use the Script. The error joins one error for each problem, which names the
// reply, the field in JSON, and what was expected. The zero value is valid. The answers themselves are
// not checked: a Script may answer nonsense.
func (s Script) Validate() error { return s.validate(nil) }

// validate is Validate for the Script of a Hook with an Upstream or without: it also refuses what a webhook that
// answers itself does not use.
func (s Script) validate(behind *Upstream) error {
	var problems []error
	for i, reply := range s.Replies {
		report := func(field, format string, arguments ...any) {
			problems = append(problems, fmt.Errorf("check script: reply %d: %s: %s", i+1, field, fmt.Sprintf(format, arguments...)))
		}
		reply.checkFault(report)
		reply.checkWaits(report)
		reply.checkHTTP(report)
		if reply.Fault.OfConnection() && len(s.Replies) > 1 {
			report("fault", "%q applies to every call of a hook, so it must be in the only reply; the script has %d replies", reply.Fault, len(s.Replies))
		}
		for _, field := range reply.fields() {
			if behind != nil && field.set && field.ofAnswer {
				report(field.name, "has no effect, because the webhook under test answers; want fault, http, delay, barrier, meanwhile")
			}
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

// report adds a problem of a field.
type report func(field, format string, arguments ...any)

func (r Reply) checkFault(report report) {
	fields := r.fields()
	extra := slices.IndexFunc(fields, func(field replyField) bool { return field.set })
	switch {
	case r.Fault != NoFault && !slices.Contains(Faults(), r.Fault):
		report("fault", "unknown fault %q%s", r.Fault, suggestion(r.Fault, Faults()))
	case r.Fault.OfConnection() && extra >= 0:
		report(fields[extra].name, "has no effect with fault %q, which prevents every call; remove it", r.Fault)
	case (r.Fault == Reset || r.Fault == Hang) && r.HTTP != nil:
		report("http", "has no effect with fault %q, which sends no answer; remove it", r.Fault)
	}
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

func (r Reply) checkWaits(report report) {
	if r.Delay < 0 {
		report("delay", "got %s, want 0 or more", r.Delay)
	}
	if (r.Barrier != "") != (r.BarrierSize >= 2) || r.BarrierSize == 1 {
		report("barrier", "got the name %q and barrierSize %d, want a name and the number of calls that wait there, 2 or more", r.Barrier, r.BarrierSize)
	}
}

func (r Reply) checkHTTP(report report) {
	if r.HTTP == nil {
		return
	}
	if code := r.HTTP.Code; code != 0 && (code < 200 || code > 999) {
		report("http.code", "got %d, want a final status code, 200 to 999", code)
	}
	for name, value := range r.HTTP.Header {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			report("http.header", "%q: %q is not a header", name, value)
		}
	}
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
