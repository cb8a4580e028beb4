package report

import (
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// The apiVersion and kind of every Report.
const (
	APIVersion = "admissiontest.dev/v1alpha1"
	Kind       = "Report"
)

// Report is what a run found. Make one with New.
type Report struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Target     TargetInfo `json:"target"`
	// Summary counts the Outcomes.
	Summary Summary `json:"summary"`
	Timing  Timing  `json:"timing"`
	// Outcomes has one entry for each selected scenario.
	Outcomes []Outcome `json:"outcomes"`
	// Interrupted is true when the operator ended the run before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Incomplete says why some scenarios were not reached. Empty means that all were.
	Incomplete string `json:"incomplete,omitempty"`
}

// New returns a Report of a run on the target described, without outcomes.
func New(info framework.TargetInfo) Report {
	return Report{
		APIVersion: APIVersion,
		Kind:       Kind,
		Target: TargetInfo{
			Kind:          info.Kind,
			ServerVersion: info.ServerVersion,
			FeatureGates:  info.FeatureGates,
			Abilities:     info.Abilities,
			Transport:     info.Transport,
		},
	}
}

// TargetInfo describes the target of a run. A zero field is not known.
type TargetInfo struct {
	// Kind is one of the target kinds: "envtest".
	Kind string `json:"kind"`
	// ServerVersion is the API server's gitVersion, "v1.36.3".
	ServerVersion string `json:"serverVersion"`
	// Plugins are the admission plugins known to be enabled.
	Plugins []string `json:"plugins,omitempty"`
	// FeatureGates are the gates that the server reports.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Abilities are those that the target has, "audit" for instance.
	Abilities []string `json:"abilities,omitempty"`
	// Transport is how the API server reached our Hooks: "url" or "service".
	Transport string `json:"transport,omitempty"`
	// Replicas is how many API servers were addressed one by one.
	Replicas int `json:"replicas,omitempty"`
}

// Timing says in seconds where the time of a run went.
type Timing struct {
	// TargetReady is from the beginning until the target answered.
	TargetReady float64 `json:"targetReady"`
	// Catalogue is from the beginning of the first scenario on the default server
	// until all had run there and were removed.
	Catalogue float64 `json:"catalogue"`
	// Total is the whole run.
	Total float64 `json:"total"`
}

// Outcome is what became of one scenario.
type Outcome struct {
	// Name is the scenario's slug, Area the part of the catalogue that it lies in.
	Name string `json:"name"`
	Area string `json:"area"`
	// Level is how binding the requirement is.
	Level framework.Level `json:"level"`
	// Verdict is what the run says of it.
	Verdict framework.Verdict `json:"verdict"`
	// Requirement is the law, Source where it stands.
	Requirement string   `json:"requirement"`
	Source      []string `json:"source,omitempty"`
	// Behaviours are IDs of the behaviour catalogue.
	Behaviours []string `json:"behaviours,omitempty"`
	// File is where the scenario was read from.
	File string `json:"file,omitempty"`
	// DurationSeconds is how long its steps took.
	DurationSeconds float64 `json:"durationSeconds"`
	// Reason says in a line why the verdict is not a pass.
	Reason string `json:"reason,omitempty"`
	// Evidence is what was observed where an expectation did not hold.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Rerun is the command that runs this scenario again.
	Rerun string `json:"rerun,omitempty"`
}

// NotReached begins the Reason of a scenario that a run ended before.
const NotReached = "not reached"

// Reached is false where the run ended before the scenario.
func (o Outcome) Reached() bool {
	return o.Verdict != framework.Errored || !strings.HasPrefix(o.Reason, NotReached)
}

// Evidence is what was observed at the step that decided the verdict.
type Evidence struct {
	// Step counts the scenario's steps from 1, Line is the step's in the file. Zero
	// is not known.
	Step int `json:"step,omitempty"`
	Line int `json:"line,omitempty"`
	// Action says what the step did: "create ConfigMap subject".
	Action string `json:"action,omitempty"`
	// Mismatches are the expectations that did not hold.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	// Timeline are the admission calls made, in the order in which they began.
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// Response says in a line what the client saw.
	Response string `json:"response,omitempty"`
}

// Mismatch is one expectation that did not hold.
type Mismatch struct {
	// Path says of what: "code", "calls[1].request.operation".
	Path string `json:"path"`
	// Expected describes the set that would have held, Actual is what was found.
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

// TimelineEntry is one admission call, or what the audit log says of one.
type TimelineEntry struct {
	// OffsetMillis is when the call began, in milliseconds after the client sent the
	// request. It means nothing where Observed is false.
	OffsetMillis float64 `json:"offsetMillis"`
	// Phase is mutating or validating, or "audit" for a line of the audit log.
	Phase string `json:"phase"`
	// Round counts the calls of one webhook in one phase: 0 is the first, and
	// another is a reinvocation.
	Round int `json:"round"`
	// Webhook is the webhook's name. Empty for a line of the audit log.
	Webhook string `json:"webhook,omitempty"`
	// Summary says what was asked and answered.
	Summary string `json:"summary"`
	// Observed is true where a Hook of ours received the call, and false where it is
	// inferred.
	Observed bool `json:"observed"`
	// Divergent marks the first call that is not as expected.
	Divergent bool `json:"divergent,omitempty"`
}
