package expect

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
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
func (s Step) culprits(trace framework.Trace, findings []reach.Finding) []culprit {
	if s.Request == nil || len(s.Mismatches) == 0 {
		return nil
	}
	if !s.Result.Allowed() {
		return s.ofRefusal(trace)
	}
	var found []culprit
	for _, m := range s.Mismatches {
		path, ofObject := strings.CutPrefix(m.Path, "object.")
		if !ofObject || s.Expect == nil {
			continue
		}
		if one := s.ofField(path, trace, findings); one.text != "" {
			found = append(found, one)
		}
	}
	return slices.CompactFunc(found, func(a, b culprit) bool { return a == b })
}

// ofField returns what last changed a field of the object: a patch of a webhook, or a plugin.
func (s Step) ofField(path string, trace framework.Trace, findings []reach.Finding) culprit {
	pointer := pointerOf(path)
	for i := len(trace) - 1; i >= 0 && pointer != ""; i-- {
		call := &trace[i]
		if p := call.Plugin; p != nil && !callsWebhooks(p.Name) && slices.ContainsFunc(p.Changed, func(changed string) bool { return touches(pointerOf(changed), pointer) }) {
			by := fmt.Sprintf("plugin %q", p.Name)
			if names := mutating(findings); p.Name == "MutatingAdmissionPolicy" && len(names) > 0 {
				by = policies(names)
			}
			return culprit{by + " changed object." + path, call}
		}
		if operation, did := s.changes(*call, pointer); did != "" {
			return culprit{fmt.Sprintf("webhook %q: its patch (%s) %s object.%s", call.Webhook, redact.Matcher().Cut(operation), did, path), call}
		}
	}
	return culprit{}
}

// changes returns the last operation of the patch of a call that touches a field of the object of the request,
// "replace /spec/containers", and what it did, or "".
func (s Step) changes(call framework.Call, pointer string) (operation, did string) {
	patch, _ := call.Response["patch"].([]any)
	if call.Plugin != nil || call.Response["allowed"] != true || !s.about(call) {
		return "", ""
	}
	for _, item := range slices.Backward(patch) {
		fields, _ := item.(map[string]any)
		target, _ := fields["path"].(string)
		if !touches(target, pointer) || fields["op"] == "add" && addsOther(target, pointer, fields["value"]) {
			continue
		}
		did := "changed"
		if fields["op"] == "remove" {
			did = "removed"
		} else if fields["op"] == "add" && strings.HasPrefix(pointer, target) {
			did = "added"
		}
		return fmt.Sprintf("%v %s", fields["op"], target), did
	}
	return "", ""
}

// addsOther reports whether an operation that adds a map at a JSON pointer adds no field of another one, which is below it.
func addsOther(target, pointer string, value any) bool {
	fields, ofMap := value.(map[string]any)
	rest, below := strings.CutPrefix(pointer, target+"/")
	first, _, _ := strings.Cut(rest, "/")
	_, has := fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(first)]
	return ofMap && below && !has
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

// mutating returns the policies that mutate the request, in quotes.
func mutating(findings []reach.Finding) (names []string) {
	for _, f := range findings {
		if f.Effect == reach.EffectMutates {
			names = append(names, fmt.Sprintf("%q", f.Name))
		}
	}
	return names
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

// ofRefusal returns what refused the request, or what made the object that the API server refused.
func (s Step) ofRefusal(trace framework.Trace) []culprit {
	status := s.Result.Status
	for i := range trace {
		if p := trace[i].Plugin; p != nil && p.Refused != nil && !callsWebhooks(p.Name) && !strings.HasSuffix(p.Name, "AdmissionPolicy") {
			return []culprit{{fmt.Sprintf("plugin %q refused the request", p.Name), &trace[i]}}
		}
	}
	if by := RefusedBy(status, ""); by.Webhook != "" {
		one := culprit{}
		if by.Failed {
			one.text = fmt.Sprintf("the call of webhook %q failed", by.Webhook)
		}
		for i := range trace {
			if trace[i].Webhook == by.Webhook {
				one.call = &trace[i]
			}
		}
		return []culprit{one}
	} else if by != (Refuser{}) {
		return nil
	}
	switch {
	case status.Code == http.StatusInternalServerError:
		return s.ofPatch(trace)
	case status.Code == http.StatusUnprocessableEntity && status.Details != nil:
		return s.ofInvalid(status.Details.Causes, trace)
	default:
		return nil
	}
}

// unusable matches what an API server says of a patch that it cannot apply, or that makes an object which it cannot
// decode (gopkg.in/evanphx/json-patch.v4, k8s.io/apimachinery/pkg/runtime).
var unusable = regexp.MustCompile(`operation does not apply|testing (path|value) |error in \w+ for path|json: |cannot unmarshal|decod|Kind' is missing|no kind `)

// ofPatch returns the webhook whose patch an API server could not use. Its message does not name it, and it
// calls no other webhook afterwards (k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go).
func (s Step) ofPatch(trace framework.Trace) []culprit {
	reason := strings.TrimPrefix(s.Result.Status.Message, "Internal error occurred: ")
	for i := len(trace) - 1; i >= 0 && unusable.MatchString(reason); i-- {
		call := &trace[i]
		if call.Plugin != nil || !s.about(*call) {
			continue
		}
		patch, _ := call.Response["patch"].([]any)
		if call.Phase != framework.Mutating || len(patch) == 0 || call.Response["allowed"] != true {
			break
		}
		return []culprit{{fmt.Sprintf("webhook %q: its patch cannot be applied: %s", call.Webhook, reason), call}}
	}
	return nil
}

// ofInvalid returns the changes of the fields that the API server finds invalid. Fields that are as the
// client sent them have none.
func (s Step) ofInvalid(causes []metav1.StatusCause, trace framework.Trace) []culprit {
	var found []culprit
	for _, cause := range causes {
		if one := s.ofField(cause.Field, trace, nil); one.call != nil {
			found = append(found, one)
		}
	}
	return found
}
