package engine

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// lostCause is why an outcome says nothing if a connection of the API server can have been lost.
const lostCause = "other clients made so many connections to this process or to the API server that one between them can have been lost"

// strangers returns what clients other than the API server did to a target until now.
func strangers(of target.Target) hook.Strangers {
	if count := of.Optional().Strangers; count != nil {
		return count()
	}
	return hook.Strangers{}
}

// lostSince reports whether a connection of the API server can have been lost since there were so many.
func (r *groupRun) lostSince(before int) bool { return strangers(r.target).Lost != before }

// canDependOnLost reports whether an outcome would perhaps be another one if a connection had not been lost: with
// one call less, a scenario can pass too.
func canDependOnLost(outcome report.Outcome) bool {
	return outcome.Verdict != framework.Unsupported && !outcome.Mistake
}
