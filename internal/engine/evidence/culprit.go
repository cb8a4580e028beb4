package evidence

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/match"
)

// culprit is what made an expectation fail.
type culprit struct {
	text string
	// call is the call that did it, or nil if it was none.
	call *framework.Call
}

// history is what became of the object of a request: the states that are known, in order.
type history struct {
	states []state
	// plugins are the calls of plugins that changed or refused something. Observed is true if the API
	// server recorded its plugins.
	plugins  []framework.Call
	observed bool
	// mutating are the policies that mutate the request, notSeen the webhooks whose calls are not seen.
	mutating, notSeen []string
	// matcher describes values.
	matcher match.Matcher
}

// state is the object at one time. By is the call of the webhook that made it from the state before, or
// nil if that is not known: the API server, a plugin or a policy.
type state struct {
	object map[string]any
	at     time.Time
	by     *framework.Call
	// failed is why the patch of By cannot be applied.
	failed error
}

// culprits returns what made the expectations of a step fail, as far as the calls show it.
func (s Step) culprits(trace framework.Trace, findings []reach.Finding, options Options) []culprit {
	if s.Request == nil || len(s.Mismatches) == 0 {
		return nil
	}
	h := s.history(trace, findings)
	h.matcher = options.Secrets.Matcher()
	for _, one := range options.NotSeen {
		h.notSeen = append(h.notSeen, one.Webhooks...)
	}
	var found []culprit
	if !s.Result.Allowed() {
		found = h.ofRefusal(s.Result.Status, trace)
	}
	for _, m := range s.Mismatches {
		path, ofObject := strings.CutPrefix(m.Path, "object.")
		if !ofObject || !s.Result.Allowed() || s.Expect == nil {
			continue
		}
		holds := func(object map[string]any) bool {
			return !slices.ContainsFunc(judge.Match(s.Expect.Object, object, "object", nil), func(other judge.Mismatch) bool {
				return other.Path == m.Path || slices.Contains(match.Ancestors(m.Path), other.Path)
			})
		}
		if one, ok := h.of(path, holds); ok {
			found = append(found, one)
		}
	}
	return slices.CompactFunc(found, func(a, b culprit) bool { return a == b })
}

func (s Step) history(trace framework.Trace, findings []reach.Finding) history {
	h := history{observed: len(trace.Plugins()) > 0}
	for _, f := range findings {
		if f.Effect == reach.EffectMutates {
			h.mutating = append(h.mutating, fmt.Sprintf("%q", f.Name))
		}
	}
	if sent := (framework.Result{Object: s.Request.Object}).Fields(); sent != nil && s.Request.Verb != framework.VerbApply {
		h.states = append(h.states, state{object: sent, at: s.Result.Started})
	}
	for i := range trace {
		call := &trace[i]
		switch {
		case call.Plugin != nil && len(pluginEffects(call.Plugin)) > 0:
			h.plugins = append(h.plugins, *call)
		case call.Plugin == nil && call.Phase == framework.Mutating && s.about(*call):
			h.add(call)
		}
	}
	if fields := s.Result.Fields(); fields != nil && s.Result.Allowed() {
		h.states = append(h.states, state{object: fields, at: s.Result.Finished})
	}
	return h
}

// about reports whether a call is for the request of the step, in the version of the request: other
// requests can be sent at the same time.
func (s Step) about(call framework.Call) bool {
	request := call.Request()
	kind, _ := request["kind"].(map[string]any)
	requestKind, known := request["requestKind"].(map[string]any)
	return (s.Request.Verb == framework.VerbApply || request["operation"] == s.Request.Operation()) && (s.Request.Name == "" || request["name"] == s.Request.Name) &&
		(!known || match.Equal(kind, requestKind))
}

// add adds the states before and after a call.
func (h *history) add(call *framework.Call) {
	before, ok := call.Request()["object"].(map[string]any)
	if !ok {
		return
	}
	h.states = append(h.states, state{object: before, at: call.Started})
	patch, _ := call.Response["patch"].([]any)
	if len(patch) == 0 || call.Response["allowed"] != true {
		return
	}
	after, err := patched(before, patch)
	h.states = append(h.states, state{object: after, at: call.Finished, by: call, failed: err})
}

// patched returns an object with a JSON patch. The error is that of the library of the API server.
func patched(object map[string]any, patch []any) (map[string]any, error) {
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	operations, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	applied, err := decoded.Apply(before)
	if err != nil {
		return nil, err
	}
	var after map[string]any
	err = utiljson.Unmarshal(applied, &after)
	return after, err
}

// of returns what changed a field so that an expectation does not hold: the last change from a state in
// which it holds to one in which it does not. If it never held, it is the last change of the field, or of
// the item of a list that lacks it.
func (h history) of(path string, holds func(object map[string]any) bool) (culprit, bool) {
	for i := len(h.states) - 1; i > 0; i-- {
		if before, after := h.states[i-1], h.states[i]; after.failed == nil && before.failed == nil && !holds(after.object) && holds(before.object) {
			return h.change(i, path, ""), true
		}
	}
	return h.lastChange(path)
}

// lastChange returns the last change of a field. If the field is missing at the end, it is the change
// that added the item of a list that could have it.
func (h history) lastChange(path string) (culprit, bool) {
	if len(h.states) == 0 {
		return culprit{}, false
	}
	last := h.states[len(h.states)-1].object
	for _, inner := range match.Ancestors(path) {
		if missing(last, inner) {
			continue
		}
		for i := len(h.states) - 1; i > 0; i-- {
			before, after := valueAt(h.states[i-1].object, inner), valueAt(h.states[i].object, inner)
			added := before == (any)(match.Absent{}) && after != (any)(match.Absent{})
			without := strings.TrimPrefix(strings.TrimPrefix(path, inner), ".")
			switch {
			case without == "" && !match.Equal(before, after), missing(h.states[i].object, path) && !missing(h.states[i-1].object, path):
				return h.change(i, path, ""), true
			case without != "" && added && isItem(inner):
				return h.change(i, inner, ", without "+without), true
			}
		}
		break
	}
	return culprit{}, false
}

// isItem reports whether a path leads to an item of a list. Who added a map is not the cause of a field that
// is missing in it.
func isItem(path string) bool { return strings.HasSuffix(path, "]") && !strings.HasSuffix(path, `"]`) }

// valueAt returns the value of a field, or match.Absent.
func valueAt(object map[string]any, path string) any {
	value, err := match.Lookup(object, path)
	if err != nil {
		return match.Absent{}
	}
	return value
}

func missing(object map[string]any, path string) bool {
	return valueAt(object, path) == (any)(match.Absent{})
}

// change describes the change to the state with an index.
func (h history) change(i int, path, without string) culprit {
	before, after := h.states[i-1], h.states[i]
	did := "changed"
	switch was, is := missing(before.object, path), missing(after.object, path); {
	case was && !is:
		did = "added"
	case is && !was:
		did = "removed"
	}
	did += " object." + path + without
	if after.by != nil {
		return culprit{fmt.Sprintf("%s: its patch%s %s", named(*after.by), h.operationOn(*after.by, path), did), after.by}
	}
	for n, call := range h.plugins {
		within := !call.Started.Before(before.at) && (i == len(h.states)-1 || !call.Started.After(after.at))
		if within && !callsWebhooks(call.Plugin.Name) && slices.ContainsFunc(call.Plugin.Changed, func(changed string) bool { return overlap(changed, path) }) {
			by := fmt.Sprintf("plugin %q", call.Plugin.Name)
			if call.Plugin.Name == "MutatingAdmissionPolicy" && len(h.mutating) > 0 {
				by = policies(h.mutating)
			}
			return culprit{by + " " + did, &h.plugins[n]}
		}
	}
	return culprit{text: h.unseen(i) + " " + did}
}

// unseen describes what made a state without a call that was observed.
func (h history) unseen(i int) string {
	others := []string{"the API server (defaults, for instance)"}
	if !h.observed {
		others = append(others, "an admission plugin (on envtest, --observe-plugins shows it)")
	}
	if len(h.mutating) > 0 {
		others = append(others, policies(h.mutating))
	}
	if len(h.notSeen) > 0 {
		others = append(others, "a webhook whose calls are not seen: "+strings.Join(h.notSeen, ", "))
	}
	text := strings.Join(others, " or ")
	for _, one := range slices.Backward(h.states[:i]) {
		if one.by != nil {
			return "after the call of " + named(*one.by) + ", " + text
		}
	}
	return "before the call of any webhook, " + text
}

func policies(names []string) string {
	if len(names) == 1 {
		return "policy " + names[0]
	}
	return "one of the policies " + strings.Join(names, ", ")
}

// callsWebhooks reports whether a plugin calls webhooks, which have their own entries.
func callsWebhooks(plugin string) bool {
	return plugin == "MutatingAdmissionWebhook" || plugin == "ValidatingAdmissionWebhook"
}

// overlap reports whether one of two paths contains the other.
func overlap(a, b string) bool {
	return slices.Contains(match.Ancestors(a), b) || slices.Contains(match.Ancestors(b), a)
}

// named names the webhook of a call, or the plugin.
func named(call framework.Call) string {
	if call.Plugin != nil {
		return fmt.Sprintf("plugin %q", call.Plugin.Name)
	}
	return fmt.Sprintf("webhook %q", call.Webhook)
}

// operationOn returns the operation of a patch that changes a field, as " (replace /spec/containers)", or
// "" if several can have done it.
func (h history) operationOn(call framework.Call, path string) string {
	patch, _ := call.Response["patch"].([]any)
	field := strings.Split(match.Pointer(path), "/")
	var found []string
	for _, item := range patch {
		operation, _ := item.(map[string]any)
		target, _ := operation["path"].(string)
		if touches(strings.Split(target, "/"), field) {
			found = append(found, fmt.Sprintf("%v %s", operation["op"], target))
		}
	}
	if len(found) != 1 {
		return ""
	}
	return " (" + h.matcher.Cut(found[0]) + ")"
}

// touches reports whether one of two JSON pointers contains the other. The item "-" can be any.
func touches(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != "-" {
			return false
		}
	}
	return true
}

// ofRefusal returns what refused the request, if the response does not name it.
func (h history) ofRefusal(status metav1.Status, trace framework.Trace) []culprit {
	for i := range trace {
		if p := trace[i].Plugin; p != nil && p.Refused != nil && !callsWebhooks(p.Name) && !strings.HasSuffix(p.Name, "AdmissionPolicy") {
			return []culprit{{fmt.Sprintf("plugin %q refused the request", p.Name), &trace[i]}}
		}
	}
	if found := failedCall.FindStringSubmatch(status.Message); found != nil {
		for i, call := range slices.Backward(trace) {
			if call.Webhook == found[1] {
				return []culprit{{fmt.Sprintf("the call of webhook %q failed", found[1]), &trace[i]}}
			}
		}
		return []culprit{{text: fmt.Sprintf("the call of webhook %q failed", found[1])}}
	}
	if found := deniedCall.FindStringSubmatch(status.Message); found != nil {
		for i, call := range slices.Backward(trace) {
			if call.Webhook == found[1] {
				return []culprit{{call: &trace[i]}}
			}
		}
	}
	switch status.Code {
	case http.StatusForbidden:
		if !h.observed && judge.RefusedBy(status, "") == (judge.Refuser{}) && !strings.Contains(status.Message, `User "`) {
			return []culprit{{text: "the response does not name an admission plugin that refused (on envtest, --observe-plugins shows it)"}}
		}
		return nil
	case http.StatusInternalServerError:
		return h.ofPatch(status, trace)
	case http.StatusUnprocessableEntity:
		return h.ofInvalid(status)
	default:
		return nil
	}
}

// An API server names the webhook whose call failed, and the one that denied the request
// (k8s.io/apiserver/pkg/util/webhook/error.go, pkg/admission/plugin/webhook/errors/statuserror.go).
var (
	failedCall = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	deniedCall = regexp.MustCompile(`^admission webhook "([^"]+)" denied the request`)
)

// ofPatch returns the webhook whose patch an API server could not use. Its message does not name it, and it
// calls no other webhook afterwards (k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go).
func (h history) ofPatch(status metav1.Status, trace framework.Trace) []culprit {
	if len(h.states) == 0 {
		return nil
	}
	last := h.states[len(h.states)-1]
	if last.by == nil || slices.ContainsFunc(trace, func(c framework.Call) bool { return c.Plugin == nil && c.Phase == framework.Validating }) {
		return nil
	}
	reason := strings.TrimPrefix(status.Message, "Internal error occurred: ")
	switch {
	case last.failed != nil:
		return []culprit{{fmt.Sprintf("webhook %q: its patch cannot be applied: %s", last.by.Webhook, reason), last.by}}
	case undecodable.MatchString(reason):
		return []culprit{{fmt.Sprintf("webhook %q: the API server cannot decode the object with its patch: %s", last.by.Webhook, reason), last.by}}
	default:
		return nil
	}
}

// undecodable matches errors of decoding JSON into a type of Kubernetes.
var undecodable = regexp.MustCompile(`json: |cannot unmarshal|decod|Kind' is missing|no kind `)

// ofInvalid returns the changes of the fields that the API server finds invalid. Fields that are as the
// client sent them have none.
func (h history) ofInvalid(status metav1.Status) []culprit {
	if status.Details == nil {
		return nil
	}
	var found []culprit
	for _, cause := range status.Details.Causes {
		if one, ok := h.lastChange(cause.Field); ok && one.call != nil {
			found = append(found, one)
		}
	}
	return found
}
