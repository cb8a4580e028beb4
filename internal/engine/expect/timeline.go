package expect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

// timeline returns the calls of webhooks and plugins for a request. Marked is the call that is marked,
// or nil.
func timeline(trace framework.Trace, started time.Time, marked *framework.Call) []report.TimelineEntry {
	var entries []report.TimelineEntry
	rounds := map[string]int{}
	for _, call := range trace {
		entry := report.TimelineEntry{
			OffsetMillis: millis(call.Started.Sub(started)),
			Phase:        string(call.Phase), Webhook: call.Webhook, Observed: call.Observed,
		}
		if call.Plugin != nil {
			entry.Plugin, entry.Round, entry.Summary = call.Plugin.Name, call.Plugin.Round, pluginSummary(call)
			entry.Request, entry.Answer = pluginRequest(call.Plugin), pluginAnswer(call.Plugin)
			entry.Idle = len(pluginEffects(call.Plugin)) == 0
		} else {
			key := string(call.Phase) + " " + call.Webhook
			entry.Patch, entry.MorePatch = patchOf(call)
			entry.Round, entry.Summary = rounds[key], summary(call, entry.Patch)
			entry.Request, entry.Answer = requestOf(call), call.Answer
			rounds[key]++
		}
		if !call.Finished.IsZero() {
			took := millis(call.Finished.Sub(call.Started))
			entry.DurationMillis = &took
		}
		if marked != nil && call.Started.Equal(marked.Started) && call.Webhook == marked.Webhook && call.Plugin == marked.Plugin {
			entry.Divergent, marked = true, nil
		}
		entries = append(entries, entry)
	}
	return entries
}

// pluginSummary describes a call of a plugin: "CREATE ns/name: changed spec.priority after 12µs".
func pluginSummary(call framework.Call) string {
	text := pluginRequest(call.Plugin) + ": " + pluginAnswer(call.Plugin)
	if !call.Plugin.Handled {
		return text
	}
	return text + fmt.Sprintf(" after %s", call.Finished.Sub(call.Started).Round(time.Microsecond))
}

// pluginRequest describes the request that a plugin was called with: "CREATE pods ns/name".
func pluginRequest(p *framework.PluginCall) string {
	resource := p.Resource
	if p.Subresource != "" {
		resource += "/" + p.Subresource
	}
	return fmt.Sprintf("%s %s %s", p.Operation, resource, strings.Trim(p.Namespace+"/"+p.Object, "/"))
}

// pluginAnswer describes what a plugin did: "changed spec.priority".
func pluginAnswer(p *framework.PluginCall) string {
	if !p.Handled {
		return "not called, because it does not handle the operation"
	}
	if did := pluginEffects(p); len(did) > 0 {
		return strings.Join(did, "; ")
	}
	return "nothing"
}

// pluginEffects describes what a plugin did to the request, if anything.
func pluginEffects(p *framework.PluginCall) []string {
	var did []string
	switch {
	case p.NotComparable != "":
		did = append(did, "the change is unknown: "+p.NotComparable)
	case len(p.Changed) > 0:
		changed := "changed " + strings.Join(p.Changed, ", ")
		if p.MoreChanged > 0 {
			changed += fmt.Sprintf(" and %d more", p.MoreChanged)
		}
		did = append(did, changed)
	}
	if p.Refused != nil {
		did = append(did, fmt.Sprintf("refused, %d %s %s", p.Refused.Code, p.Refused.Reason, p.Refused.Message))
	}
	if p.Panicked != "" {
		did = append(did, "panicked: "+p.Panicked)
	}
	return did
}

// summary describes a call: "CREATE ns/name: allowed after 1.2ms".
func summary(call framework.Call, patch []report.PatchOperation) string {
	text := call.Answer
	if request := requestOf(call); request != "" {
		text = request + ": " + text
	}
	if !call.Finished.IsZero() {
		text += fmt.Sprintf(" after %s", call.Finished.Sub(call.Started).Round(100*time.Microsecond))
	}
	if call.URL != "" { // a webhook under test
		for _, operation := range patch {
			text += fmt.Sprintf("; patch: %s %s", operation.Op, operation.Path)
		}
		text += fmt.Sprintf("; %d bytes received, %d sent", call.RequestBytes, call.ResponseBytes)
	}
	return text
}

// requestOf describes the request of a call, "CREATE ns/name", or returns "".
func requestOf(call framework.Call) string {
	request := call.Request()
	operation, ok := request["operation"].(string)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %v/%v", operation, request["namespace"], request["name"])
}

// ofAdmission reports whether an audit annotation is one of admission: of the API server's own
// plugins, or of a ValidatingAdmissionPolicy, POLICY/KEY.
func ofAdmission(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	if strings.HasSuffix(prefix, "k8s.io") || strings.HasSuffix(prefix, "kubernetes.io") {
		return strings.HasSuffix(prefix, "admission.k8s.io") || prefix == "pod-security.kubernetes.io"
	}
	return prefix != key
}

// auditEntries returns the audit annotations of admission.
func auditEntries(event *framework.Audit) []report.TimelineEntry {
	if event == nil {
		return nil
	}
	var entries []report.TimelineEntry
	for _, key := range slices.Sorted(maps.Keys(event.Annotations)) {
		if ofAdmission(key) {
			entries = append(entries, report.TimelineEntry{Summary: key + " = " + event.Annotations[key], Phase: "audit"})
		}
	}
	return entries
}

// millis returns a duration in milliseconds, as in a report.
func millis(duration time.Duration) float64 { return float64(duration.Microseconds()) / 1000 }

// operationLimit is the number of operations of a patch that a report has.
const operationLimit = 20

// patchOf returns the operations of the patch that a webhook answered, and the number of those that
// are left out. They do not show the values of secrets.
func patchOf(call framework.Call) (operations []report.PatchOperation, more int) {
	m, seen := redact.Matcher(), redact.Fields(map[string]any{"request": call.Request(), "response": call.Response})
	response, _ := seen["response"].(map[string]any)
	patch, _ := response["patch"].([]any)
	for i, item := range patch {
		if i == operationLimit {
			return operations, len(patch) - i
		}
		operation, _ := item.(map[string]any)
		one := report.PatchOperation{Op: asText(operation["op"], m), Path: asText(operation["path"], m)}
		if value, ok := operation["value"]; ok {
			one.Value = m.Show(value)
		} else if from, ok := operation["from"]; ok {
			one.Value = "from " + asText(from, m)
		}
		operations = append(operations, one)
	}
	return operations, 0
}

// asText returns a field of a patch, which a webhook can set to anything.
func asText(value any, m match.Matcher) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return m.Cut(value)
	default:
		return m.Show(value)
	}
}
