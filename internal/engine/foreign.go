package engine

import (
	"context"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/report"
)

// noteForeign reports whether an error is the refusal of a request of the run by a webhook or policy that
// neither the run nor one of the scenarios installed. Nothing can be observed on such a server.
func (r *groupRun) noteForeign(ctx context.Context, err error, cases []*execution.Case) bool {
	var foreign *execution.ForeignError
	for _, c := range cases {
		if foreign = c.RefusedByForeign(ctx, err); foreign == nil {
			return false
		}
	}
	if foreign == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foreign = foreign
	return true
}

// refusedByForeign ends scenarios as inconclusive if noteForeign has noted a refusal. It reports whether it has.
func (r *groupRun) refusedByForeign(cases []*execution.Case) bool {
	r.mu.Lock()
	foreign := r.foreign
	r.mu.Unlock()
	if foreign == nil {
		return false
	}
	for _, c := range cases {
		r.finish(c.Scenario, report.Outcome{Verdict: framework.Inconclusive, Reason: foreign.Error()})
	}
	return true
}
