package report

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// The apiVersion and kind of a Report.
const (
	APIVersion = "admissiontest.dev/v1alpha1"
	Kind       = "Report"
)

// Report is the result of a run. New creates one.
type Report struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Target     TargetInfo `json:"target"`
	// Implementation describes the tested product, as given by the operator.
	Implementation *framework.Implementation `json:"implementation,omitempty"`
	// Environment is where and when the run took place. Nil if it is not known.
	Environment *Environment `json:"environment,omitempty"`
	// Shard is the part of the selection that ran. Nil if all of it ran.
	Shard *Shard `json:"shard,omitempty"`
	// Summary counts the Outcomes.
	Summary Summary `json:"summary"`
	Timing  Timing  `json:"timing"`
	// NotSeen are the webhooks under test whose calls were not seen.
	NotSeen []NotSeen `json:"notSeen,omitempty"`
	// Claim is the claim to the profile that was run. Nil if none was.
	Claim *Claim `json:"claim,omitempty"`
	// Outcomes has one entry for each selected scenario.
	Outcomes []Outcome `json:"outcomes"`
	// Mutants says which changes of policies the cases of each PolicyTest do not notice. Nil if none were made.
	Mutants []Mutants `json:"mutants,omitempty"`
	// ForeignRequests is the number of requests to the Hooks that were rejected, because their
	// client was not the API server. No verdict depends on them.
	ForeignRequests int `json:"foreignRequests,omitempty"`
	// FailOnUnsupported is true if an unsupported scenario of any level counts like a MUST that
	// failed.
	FailOnUnsupported bool `json:"failOnUnsupported,omitempty"`
	// Strict is true if a SHOULD that fails makes the run fail.
	Strict bool `json:"strict,omitempty"`
	// Interrupted is true if the operator ended the run early.
	Interrupted bool `json:"interrupted,omitempty"`
	// Incomplete says why some scenarios were not reached. Empty if all were reached.
	Incomplete string `json:"incomplete,omitempty"`
}

// New returns a Report of a run on a target, without outcomes.
func New(info framework.TargetInfo) Report {
	return Report{
		APIVersion: APIVersion,
		Kind:       Kind,
		Target: TargetInfo{
			Kind:          info.Kind,
			ServerVersion: info.ServerVersion,
			FeatureGates:  info.FeatureGates,
			Capabilities:  info.Capabilities,
			Transport:     info.Transport,
			Plugins:       info.Plugins,
			ServedKinds:   info.ServedKinds,
			Served:        info.Served,
		},
	}
}

// KindWebhook is the kind of target of a report about rules for a webhook, which no API server calls.
const KindWebhook = "webhook"

// TargetInfo describes the target of a run. A field that is zero is not known.
type TargetInfo struct {
	// Kind is the kind of target: "envtest".
	Kind string `json:"kind"`
	// ServerVersion is the gitVersion of the API server: "v1.36.3".
	ServerVersion string `json:"serverVersion"`
	// FeatureGates are the feature gates that the server reports.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Capabilities are the capabilities of the target: "audit". (Keys are frozen, so this key keeps
	// its old name.)
	Capabilities []string `json:"abilities,omitempty"`
	// Transport is how the API server called the Hooks: "url" or "service".
	Transport string `json:"transport,omitempty"`
	// Plugins are the admission plugins that were compiled into the API server in addition to
	// its own.
	Plugins []string `json:"plugins,omitempty"`
	// EnabledPlugins are the enabled admission plugins, Kubernetes' own and the plugins of Plugins, sorted.
	EnabledPlugins []string `json:"enabledPlugins,omitempty"`
	// ServedKinds are the kinds that the API server served at the beginning of the run, sorted:
	// "apps/v1 Deployment".
	ServedKinds []string `json:"servedKinds,omitempty"`
	// Served is true if "admissiontest serve" runs the API server, for several runs.
	Served bool `json:"served,omitempty"`
}

// Environment is where and when a run took place.
type Environment struct {
	// Admissiontest is the version of admissiontest: "v0.3.0".
	Admissiontest string `json:"admissiontest,omitempty"`
	// Platform is the system that admissiontest ran on: "linux/amd64".
	Platform string `json:"platform,omitempty"`
	// Started is the time at which the run began, in RFC 3339.
	Started string `json:"started,omitempty"`
}

// Shard is a part of the selected scenarios. The shards of one selection have no scenario in
// common, and together they have all.
type Shard struct {
	// Index is the number of the shard, from 1 to Count.
	Index int `json:"index"`
	Count int `json:"count"`
	// Selected is the number of the scenarios of all shards.
	Selected int `json:"selected"`
}

// NotSeen has webhooks under test that the API server calls directly and not through a Hook. So the
// report does not have their calls.
type NotSeen struct {
	// Webhooks are the names of the webhooks, sorted.
	Webhooks []string `json:"webhooks"`
	// Service is NAMESPACE/NAME of the Service that is called. Empty if an Endpoint would not change
	// that: the API server calls a URL, or a request configured the webhook.
	Service string `json:"service,omitempty"`
}

// String says what is not seen, and what to do.
func (n NotSeen) String() string {
	calls := "calls of " + strings.Join(n.Webhooks, ", ")
	if n.Service == "" {
		return calls + ": the API server calls the address in the clientConfig itself; in given, install or --install, a Service with an --endpoint makes them visible"
	}
	return fmt.Sprintf("%s: the API server calls Service %s itself; --endpoint %s=URL makes them visible", calls, n.Service, n.Service)
}

// Timing is the time that the parts of a run took, in seconds.
type Timing struct {
	// TargetReady is the time until the target responded: the default server, or the first server
	// with custom flags if no scenario ran on the default server.
	TargetReady float64 `json:"targetReady"`
	// Catalogue is the time from the first scenario on the default server until all
	// scenarios had run there and were removed. If no scenario ran there, it is the time from the
	// first response of a server with custom flags to the end of the run.
	Catalogue float64 `json:"catalogue"`
	// Total is the time of the whole run.
	Total float64 `json:"total"`
}

// Outcome is the outcome of one scenario.
type Outcome struct {
	// Name is the name of the scenario, Area its part of the catalogue.
	Name string `json:"name"`
	Area string `json:"area"`
	// Level is how binding the requirement is.
	Level framework.Level `json:"level"`
	// Verdict is the verdict.
	Verdict framework.Verdict `json:"verdict"`
	// Requirement is the requirement in one sentence, Source where it comes from.
	Requirement string   `json:"requirement"`
	Source      []string `json:"source,omitempty"`
	// Fix is how to mend what breaks a rule of a contract. Empty for scenarios.
	Fix string `json:"fix,omitempty"`
	// Rank orders the outcomes of a report: lower ranks come first. Outcomes of one rank are in the order of their names.
	Rank int `json:"-"`
	// Behaviours are IDs of behaviours.tsv.
	Behaviours []string `json:"behaviours,omitempty"`
	// File is the file of the scenario.
	File string `json:"file,omitempty"`
	// Line is the line of the scenario in File, or 0 if it is not known.
	Line int `json:"line,omitempty"`
	// DurationSeconds is the time that its steps took.
	DurationSeconds float64 `json:"durationSeconds"`
	// Reason is why the verdict is not a pass. The first line is enough to understand it.
	Reason string `json:"reason,omitempty"`
	// Cause is the part of Reason that other scenarios have too: what the API server or the run lacks.
	// Empty if Reason has no such part, or if it is the first line of Reason. For a fail it says what is wrong
	// in words that are the same for other scenarios: "only the words of a message or warning differ".
	Cause string `json:"cause,omitempty"`
	// Mistake is true for an error whose cause is in the files of the scenario: a field that the
	// API server does not know, or a manifest that it refuses as invalid.
	Mistake bool `json:"mistake,omitempty"`
	// NotServed is the kind or subresource that the API server does not serve and for which the
	// verdict is unsupported: "apps/v1 Deployment", "v1 pods/exec". Empty for any other cause.
	NotServed string `json:"notServed,omitempty"`
	// Repeated is how often the scenario was repeated because the outcome said nothing about
	// admission. For example, the API server did not respond, or another run was active.
	Repeated int `json:"repeated,omitempty"`
	// NotReached is true if the run ended before the scenario.
	NotReached bool `json:"notReached,omitempty"`
	// KnownFailing is the reason for which the operator expected this failure. Such a failure does
	// not fail the run. Empty for any other outcome.
	KnownFailing string `json:"knownFailing,omitempty"`
	// Evidence is what was observed when an expectation did not hold.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Rerun is the command that runs this scenario again.
	Rerun string `json:"rerun,omitempty"`
}

// WithKnownFailing returns the outcome of a scenario that the operator expects to fail,
// for a reason. A pass becomes a fail.
func (o Outcome) WithKnownFailing(reason string) Outcome {
	switch o.Verdict {
	case framework.Pass:
		o.Verdict = framework.Fail
		o.Reason = fmt.Sprintf("the scenario passes, but it is listed as known to fail (%s): remove it from the list", reason)
	case framework.Fail:
		o.KnownFailing = reason
	}
	return o
}

// Evidence is what was observed in the step that decided the verdict.
type Evidence struct {
	// Step is the number of the step, from 1. Line is its line in the file. Zero means not
	// known.
	Step int `json:"step,omitempty"`
	Line int `json:"line,omitempty"`
	// Action is what the step did: "create ConfigMap subject".
	Action string `json:"action,omitempty"`
	// Mismatches are the expectations that did not hold.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	// Timeline has the admission calls, in the order in which they began.
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// NotSeen are the webhooks under test of the scenario whose calls are not in Timeline.
	NotSeen []NotSeen `json:"notSeen,omitempty"`
	// Response is the response that the client got, in one line.
	Response string `json:"response,omitempty"`
	// Details are the details of the Status of a refusal, as JSON, if they say more than the name and
	// kind of the object.
	Details string `json:"details,omitempty"`
	// RefusedBy names the webhook or policy that refused the request. Empty if the response names
	// none.
	RefusedBy string `json:"refusedBy,omitempty"`
	// Causes names the webhooks, policies and plugins that made the expectations fail, and says what
	// they did: `webhook "a.example.com": its patch (remove /data/x) removed object.data.x`.
	Causes []string `json:"causes,omitempty"`
	// Decisions says what each webhook, policy and binding of the scenario does for the request. It
	// leaves out webhooks that are in Timeline.
	Decisions []Decision `json:"decisions,omitempty"`
	// Warnings are what the type check of Kubernetes says about the policies that apply to the request.
	Warnings []string `json:"warnings,omitempty"`
	// DurationMillis is the time from the request of the client to the response. 0 means not known.
	DurationMillis float64 `json:"durationMillis,omitempty"`
}

// Decision is what a webhook, or a policy with a binding, does for a request. It is inferred from
// the configurations of the scenario, not observed.
type Decision struct {
	// Subject names the webhook, or the policy and binding.
	Subject string `json:"subject"`
	// Effect is an Effect of package reach: "none", "called", "mutates", "invalid", "refused" or
	// "unknown".
	Effect string `json:"effect"`
	// Reason says why the effect is "none": "NamespaceSelector". It is a Reason of package reach.
	Reason string `json:"reason,omitempty"`
	// Text describes effect and reason.
	Text string `json:"text"`
}

// Mismatch is one expectation that did not hold.
type Mismatch struct {
	// Path is the field: "code", "calls[1].request.operation".
	Path string `json:"path"`
	// Expected describes the values that would have matched. Actual is what was found.
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

// TimelineEntry is one admission call, of a webhook or a plugin, or an audit annotation of one.
type TimelineEntry struct {
	// OffsetMillis is the start of the call, in milliseconds after the client sent the
	// request. Ignore it if Observed is false.
	OffsetMillis float64 `json:"offsetMillis"`
	// Phase is "mutating" or "validating", or "audit" for an audit annotation.
	Phase string `json:"phase"`
	// Round is the number of the call of this webhook in this phase, from 0. Later calls
	// are reinvocations. For a plugin it is the number of the pass.
	Round int `json:"round"`
	// Webhook is the name of the webhook. Empty for an audit annotation.
	Webhook string `json:"webhook,omitempty"`
	// Plugin is the name of the admission plugin. Empty unless the entry is the call of a plugin.
	Plugin string `json:"plugin,omitempty"`
	// Summary describes the request and the answer.
	Summary string `json:"summary"`
	// Request is the request of the call, "CREATE ns/name", and Answer the answer: "allowed". Both
	// are parts of Summary.
	Request string `json:"request,omitempty"`
	Answer  string `json:"answer,omitempty"`
	// DurationMillis is the time from the call to the answer. Nil if it is not known.
	DurationMillis *float64 `json:"durationMillis,omitempty"`
	// Patch has the first operations of the patch that a webhook answered, MorePatch the number of
	// the others.
	Patch     []PatchOperation `json:"patch,omitempty"`
	MorePatch int              `json:"morePatch,omitempty"`
	// Observed is true if a Hook received the call or the API server recorded it, and false if
	// the call is inferred.
	Observed bool `json:"observed"`
	// Divergent marks the first call that is not as expected.
	Divergent bool `json:"divergent,omitempty"`
	// Idle is true for the call of a plugin that neither changed nor refused anything.
	Idle bool `json:"idle,omitempty"`
}

// PatchOperation is an operation of a JSON patch.
type PatchOperation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// Value is the value as JSON, or the path from which a value is moved or copied. A long value
	// is cut.
	Value string `json:"value,omitempty"`
}
