package engine

import (
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// isolate reports whether scenarios run one at a time. It is an error if they would disturb other clients of the API server.
func (r *groupRun) isolate() (bool, error) {
	ask := r.target.Optional().Lacks
	if ask == nil {
		return r.options.Isolate, nil
	}
	why, touches := ask()[target.Narrowing]
	if touches && r.target.Optional().Confined != nil {
		return false, fmt.Errorf("run scenarios on an API server with other clients: their requests would be touched: %s; use an API server that is only for tests, such as one of \"admissiontest serve\"", why)
	}
	return r.options.Isolate || touches, nil
}

// lacking returns why the target cannot run a case because of what the API server is known to lack, or "".
func (r *groupRun) lacking(c *execution.Case) string {
	ask := r.target.Optional().Lacks
	if ask == nil {
		return ""
	}
	lacks := ask()
	if len(lacks) == 0 {
		return ""
	}
	_, sent := c.Requests()
	for _, feature := range featuresOf(c.Scenario, sent) {
		if why, lacking := lacks[feature]; lacking {
			return fmt.Sprintf("needs %s, which this API server lacks: %s", feature, why)
		}
	}
	return ""
}

// featuresOf returns the features that a scenario with some requests needs.
func featuresOf(s scenario.Scenario, sent []framework.Request) []target.Feature {
	var needs []target.Feature
	for _, request := range sent {
		if request.User != nil {
			needs = append(needs, target.Impersonation)
		}
		if request.Verb == framework.VerbDeleteCollection {
			needs = append(needs, target.DeleteCollection)
		}
		if request.HTTP.Query.Get("labelSelector") != "" {
			needs = append(needs, target.Selectors)
		}
		if request.Verb != framework.VerbGet && request.Verb != framework.VerbList {
			needs = append(needs, target.AdmissionOf(request.Kind.GroupKind()))
		}
	}
	_ = execution.EachStep(s.Spec, func(_ string, step scenario.Step) error { // it returns no error
		if step.Then != nil && step.Then.Warnings != nil {
			needs = append(needs, target.Warnings)
		}
		return nil
	})
	slices.Sort(needs)
	return slices.Compact(needs)
}

// gateUnknown returns an inconclusive outcome for a failure that can have the cause that a feature gate is off, if it is
// not known which are on.
func (r *groupRun) gateUnknown(s scenario.Scenario, outcome report.Outcome) report.Outcome {
	gate := s.Spec.FeatureGate
	if outcome.Verdict == framework.Fail && gate != "" && r.target.Info().FeatureGates == nil {
		outcome.Verdict = framework.Inconclusive
		outcome.Cause = "it is not known which feature gates are on: the API server shows no metrics"
		outcome.Reason = fmt.Sprintf("feature gate %s is possibly off: the API server shows no metrics; %s", gate, outcome.Reason)
	}
	return outcome
}
