package rules

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// refusalRules returns the rules for refusals, audit annotations and warnings.
func refusalRules() []check.Rule {
	return append([]check.Rule{
		{
			ID: "E1", Name: "refusals-are-status-errors", Level: framework.Must,
			Title: "Every refusal is a Status error with a code such as 403. A failure of the plugin itself is an InternalError.",
			Why:   "The API server checks the type of the error and does not unwrap it. A plain, wrapped or aggregate error becomes an internal server error with an unknown reason, which clients retry.",
			Fix:   "Return admission.NewForbidden(attributes, err) or an error of k8s.io/apimachinery/pkg/api/errors, unwrapped. For a failure use apierrors.NewInternalError.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/69801",
				"https://github.com/kubernetes/kubernetes/issues/79378",
				"https://github.com/openshift/origin/issues/9401",
			},
			Check: checkStatusErrors,
		},
		{
			ID: "E2", Name: "refusals-name-the-object", Level: framework.Should,
			Title:  "A refusal with 403 or 409 names the resource and the object of the request.",
			Why:    "Clients and controllers read the details of the Status to learn what was refused. Details of another resource mislead them.",
			Fix:    "Use admission.NewForbidden(attributes, err), which takes the details from the request.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/14011", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#NewForbidden"},
			Check:  checkDetails,
		},
		{
			ID: "E3", Name: "refusal-messages-are-stable", Level: framework.Should,
			Title:  "The message of a refusal is the same each time. It has no memory addresses and no formatting errors.",
			Why:    "Controllers copy the message into conditions and events. If it varies, each retry changes them. Text such as %!s(MISSING) is of no use to a user.",
			Fix:    "Sort values that come from a map, and do not print pointers.",
			Source: []string{"https://pkg.go.dev/fmt#hdr-Format_errors"},
			Check:  checkMessages,
		},
		{
			ID: "E4", Name: "refused-requests-write-nothing", Level: framework.Should,
			Title:  "The plugin writes nothing for a request that it refuses.",
			Why:    "The user gets an error and expects that nothing happened. But an object that the plugin created in Admit stays in the cluster, and each attempt of a client can add another one.",
			Fix:    "Make all checks before the first write: write at the end of Validate, or repeat the checks of Validate before writing in Admit.",
			Source: []string{"https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#admission-control-phases"},
			Check:  checkRefusedWrites,
		},
	}, annotationRules()...)
}

// send sends a request to a plugin: through both phases, or only Validate.
type send func(h *harness.Harness) (harness.Result, bool)

// refusals calls f for each refusal, with the function that sends the request again. It sends
// the requests of Subject.Reject through both phases, and then all requests only through
// Validate, with the object as it was before Admit: a webhook can revert what Admit did.
func refusals(t *check.T, f func(h *harness.Harness, request framework.Request, result harness.Result, again send)) {
	h, late := t.Plugin(), t.HalfBudget()
	plugin := h.Plugin()
	if !check.HasPhase(plugin, framework.Validating) && len(t.Subject.Refused()) == 0 {
		t.Unsupported("the plugin has no Validate, and the Subject has no request that it refuses")
	}
	try := func(request framework.Request, how send) bool {
		if late() {
			t.LogOnce("stopped before the last request: half of the budget is used")
			return false
		}
		if result, ok := how(h); ok && result.Err != nil {
			f(h, request, result, how)
		}
		return true
	}
	for _, request := range t.Subject.Refused() {
		if !try(request, func(h *harness.Harness) (harness.Result, bool) { return t.Do(h, request) }) {
			return
		}
	}
	if !check.HasPhase(plugin, framework.Mutating) || !check.HasPhase(plugin, framework.Validating) {
		return
	}
	for _, request := range t.Requests() {
		alone := func(h *harness.Harness) (harness.Result, bool) {
			given, ok := t.AttributesFor(h, request, framework.Validating)
			if !ok || !h.Plugin().Handles(given.Operation) {
				return harness.Result{}, false
			}
			result, thrown := t.Call(h, given.Record(), framework.Validating)
			return result, thrown == nil
		}
		if !try(request, alone) {
			return
		}
	}
}

func checkStatusErrors(t *check.T) {
	refusals(t, func(_ *harness.Harness, request framework.Request, result harness.Result, _ send) {
		t.Reached()
		// Only the type of the error itself counts, as in responsewriters.ErrorToAPIStatus.
		_, status := result.Err.(apierrors.APIStatus)
		switch code := result.Status.Code; {
		case !status:
			t.Errorf("%s: refused with a %T, which the API server turns into %d %s (%s). want admission.NewForbidden or an error of k8s.io/apimachinery/pkg/api/errors",
				request, result.Err, code, result.Status.Reason, result.Status.Message)
		case result.Status.Status != metav1.StatusFailure:
			t.Errorf("%s: refused with a Status whose status is %q, want %q", request, result.Status.Status, metav1.StatusFailure)
		case code < http.StatusBadRequest, code == http.StatusInternalServerError && result.Status.Reason != metav1.StatusReasonInternalError:
			t.Errorf("%s: refused with code %d, reason %q (%s), want the code of a refusal, such as 403, or apierrors.NewInternalError", request, code, result.Status.Reason, result.Status.Message)
		}
	})
}

func checkDetails(t *check.T) {
	refusals(t, func(h *harness.Harness, request framework.Request, result harness.Result, _ send) {
		if code := result.Status.Code; code != http.StatusForbidden && code != http.StatusConflict {
			return
		}
		f, ok := t.AttributesFor(h, request, framework.Mutating)
		if !ok {
			return
		}
		t.Reached()
		for _, wrong := range wrongDetails(f, result.Status.Details) {
			t.Errorf("%s (%s): refused with %d, but %s: %s", request, f, result.Status.Code, wrong, result.Status.Message)
		}
	})
}

// wrongDetails returns which details of a Status differ from the request.
func wrongDetails(f check.Attributes, details *metav1.StatusDetails) []string {
	if details == nil {
		return []string{"the Status has no details"}
	}
	var wrong []string
	differs := func(what, got string, want ...string) {
		if !slices.Contains(want, got) {
			wrong = append(wrong, fmt.Sprintf("its details have %s %q, want %q", what, got, want[0]))
		}
	}
	resource := f.Resource.Resource
	differs("group", details.Group, f.Resource.Group, f.Kind.Group)
	differs("kind", details.Kind, resource, f.Kind.Kind, resource+"/"+f.Subresource)
	names := []string{f.Name}
	if accessor, err := meta.Accessor(f.Object); err == nil && f.Object != nil {
		names = append(names, accessor.GetName(), accessor.GetGenerateName())
	}
	if f.Name == "" {
		names = append(names, "Unknown") // admission.NewForbidden uses this name for an object without a name
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != "" && isGeneratedFrom(f, details.Name, name) }) {
		return wrong
	}
	differs("name", details.Name, names...)
	return wrong
}

// isGeneratedFrom reports whether a name was generated from a generateName.
func isGeneratedFrom(f check.Attributes, name, from string) bool {
	return f.Name == "" && len(name) > len(from) && name[:len(from)] == from
}

// unwantedTexts returns what no message should contain.
func unwantedTexts() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"a memory address":   regexp.MustCompile(`\b0x[0-9a-f]{6,}\b|\(0x[0-9a-f]+\)`),
		"a formatting error": regexp.MustCompile(`%!(\w|\()`),
	}
}

func checkMessages(t *check.T) {
	unwanted, other := unwantedTexts(), t.Plugin()
	refusals(t, func(_ *harness.Harness, request framework.Request, result harness.Result, how send) {
		t.Reached()
		message := result.Status.Message
		for what, pattern := range unwanted {
			if found := pattern.FindString(message); found != "" {
				t.Errorf("%s: the message of the refusal contains %s, %q: %s", request, what, found, message)
				return
			}
		}
		var varied string
		if t.Ever(func() bool {
			again, ok := how(other)
			if ok && again.Err != nil {
				varied = again.Status.Message
			}
			return ok && again.Err != nil && varied != message
		}) {
			t.Errorf("%s: two equal plugins refuse it with different messages:\n- %s\n+ %s", request, message, varied)
		}
	})
}

// isFinal reports whether a refusal tells the client that the same request will be refused again.
func isFinal(status metav1.Status) bool {
	retried := []int32{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests}
	return status.Code < http.StatusInternalServerError && !slices.Contains(retried, status.Code)
}

// checkRefusedWrites ignores events, which can report the refusal, and refusals after which the client tries
// again: the plugin may have created what the next attempt needs.
func checkRefusedWrites(t *check.T) {
	writes, refused := false, []framework.Request(nil)
	for _, request := range t.Requests() {
		result, ok := t.Do(t.Plugin(), request)
		if !ok {
			continue
		}
		stored := succeeded(result.Calls)
		writes = writes || len(stored) > 0
		if result.Err == nil || !isFinal(result.Status) {
			continue
		}
		t.Reached()
		if len(stored) > 0 {
			t.Errorf("%s: the plugin %s, but wrote:\n%s\nwant: no write", request, refusalText(result.Status), stored)
			continue
		}
		refused = append(refused, request)
	}
	if checkLateWrites(t, refused) || t.Failed() {
		return
	}
	if !writes {
		t.Unsupported("for these requests the plugin writes nothing")
	}
}

// succeeded returns the writes of a plugin that changed objects, without events.
func succeeded(calls fakes.Calls) fakes.Calls {
	return slices.DeleteFunc(lasting(calls), func(call fakes.Call) bool { return call.Err != nil || call.Resource.Resource == "events" })
}

// checkLateWrites sends requests that the plugin refuses to one plugin, and waits a moment for what its goroutines
// write afterwards. It returns whether they wrote.
func checkLateWrites(t *check.T, refused []framework.Request) bool {
	late := func(requests []framework.Request) (writes fakes.Calls) {
		h := t.Plugin()
		first := len(h.World().Calls())
		for _, request := range requests {
			t.Do(h, request)
		}
		check.Poll(t.Context(), moment, func() bool {
			idle := len(h.Goroutines()) == 0 // before the look at the calls
			writes = succeeded(h.World().Calls()[first:])
			return len(writes) > 0 || idle
		})
		return writes
	}
	if len(refused) == 0 {
		return false
	}
	writes := late(refused)
	switch {
	case len(writes) == 0:
		return false
	case len(late(nil)) > 0:
		t.Unobserved("the plugin writes in the background, without a request too")
	default:
		t.Errorf("after the plugin had refused requests, it wrote:\n%s\nwant: no write", writes)
	}
	return true
}
