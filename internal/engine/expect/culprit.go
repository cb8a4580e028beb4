package expect

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/match"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// culprit is what made an expectation fail.
type culprit struct {
	text string
	// call is the call that did it, or nil if it was none.
	call *framework.Call
}

// culprits returns what made the expectations of a step fail, as far as the calls show it.
func (s Step) culprits(trace framework.Trace) (found []culprit) {
	if s.Request == nil || len(s.Mismatches) == 0 {
		return nil
	}
	var paths []string
	if !s.Result.Allowed() {
		if found = s.ofRefusal(trace); len(found) > 0 {
			return found
		}
		if details := s.Result.Status.Details; details != nil && s.Result.Status.Code == http.StatusUnprocessableEntity {
			for _, cause := range details.Causes {
				paths = append(paths, cause.Field)
			}
		}
	}
	for _, m := range s.Mismatches {
		if path, ofObject := strings.CutPrefix(m.Path, "object."); ofObject && s.Expect != nil && s.Result.Allowed() {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		if one := s.ofField(path, trace); one.call != nil {
			found = append(found, one)
		}
	}
	return slices.CompactFunc(found, func(a, b culprit) bool { return a == b })
}

// ofField returns the last call that changed a field of the object: of a webhook whose patch touches it, or of a plugin.
func (s Step) ofField(path string, trace framework.Trace) culprit {
	pointer := pointerOf(path)
	for i := len(trace) - 1; i >= 0 && pointer != ""; i-- {
		call := &trace[i]
		if p := call.Plugin; p != nil && !callsWebhooks(p.Name) && slices.ContainsFunc(p.Changed, func(changed string) bool { return touches(pointerOf(changed), pointer) }) {
			return culprit{fmt.Sprintf("plugin %q changed object.%s", p.Name, path), call}
		}
		for _, item := range slices.Backward(s.patchOf(*call)) {
			fields, _ := item.(map[string]any)
			if target, _ := fields["path"].(string); touches(target, pointer) {
				return culprit{fmt.Sprintf("webhook %q: its patch (%s) changed object.%s", call.Webhook, redact.Matcher().Cut(fmt.Sprintf("%v %s", fields["op"], target)), path), call}
			}
		}
	}
	return culprit{}
}

// patchOf returns the patch of a call for the request of the step, and none for a call for another request that was
// sent at the same time.
func (s Step) patchOf(call framework.Call) []any {
	request := call.Request()
	operation := s.Request.Verb == framework.VerbApply || request["operation"] == s.Request.Operation()
	if call.Plugin != nil || call.Response["allowed"] != true || !operation || s.Request.Name != "" && request["name"] != s.Request.Name {
		return nil
	}
	patch, _ := call.Response["patch"].([]any)
	return patch
}

// pointerOf returns a path as a JSON pointer.
func pointerOf(path string) string {
	steps, _ := match.ParsePath(path) // an API server can name a field in another way
	return steps.Pointer()
}

// touches reports whether two JSON pointers contain each other. The item "-" can be any.
func touches(pointer, other string) bool {
	a, b := strings.Split(pointer, "/"), strings.Split(other, "/")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != "-" {
			return false
		}
	}
	return true
}

// callsWebhooks reports whether a plugin calls webhooks, which have their own entries.
func callsWebhooks(plugin string) bool {
	return plugin == "MutatingAdmissionWebhook" || plugin == "ValidatingAdmissionWebhook"
}

// unusable matches what an API server says of a patch that it cannot apply, or that makes an object which it cannot
// decode (gopkg.in/evanphx/json-patch.v4, k8s.io/apimachinery/pkg/runtime).
var unusable = regexp.MustCompile(`operation does not apply|testing (path|value) |error in \w+ for path|json: |cannot unmarshal|decod|Kind' is missing|no kind `)

// ofRefusal returns what refused the request: a plugin, a webhook, or the last patch, if the API server could not use it.
// Its message does not name that webhook, and it calls no other one afterwards
// (k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go).
func (s Step) ofRefusal(trace framework.Trace) []culprit {
	status := s.Result.Status
	by := RefusedBy(status, "")
	named := culprit{}
	if by.Webhook != "" && by.Failed {
		named.text = fmt.Sprintf("the call of webhook %q failed", by.Webhook)
	}
	patched := culprit{}
	for i := range trace {
		call := &trace[i]
		if p := call.Plugin; p != nil && p.Refused != nil && !callsWebhooks(p.Name) && !strings.HasSuffix(p.Name, "AdmissionPolicy") {
			return []culprit{{fmt.Sprintf("plugin %q refused the request", p.Name), call}}
		}
		if by.Webhook != "" && call.Webhook == by.Webhook {
			named.call = call
		}
		if call.Plugin == nil && call.Phase == framework.Mutating && len(s.patchOf(*call)) > 0 {
			patched.call = call
		}
	}
	reason := strings.TrimPrefix(status.Message, "Internal error occurred: ")
	switch {
	case by.Webhook != "":
		return []culprit{named}
	case by == (Refuser{}) && status.Code == http.StatusInternalServerError && patched.call != nil && unusable.MatchString(reason):
		patched.text = fmt.Sprintf("webhook %q: its patch cannot be applied: %s", patched.call.Webhook, reason)
		return []culprit{patched}
	default:
		return nil
	}
}
