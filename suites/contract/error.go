package contract

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// errorProperties returns the properties of this file and of annotation.go: what a
// plugin answers.
func errorProperties() []Property {
	return append([]Property{
		{
			ID: "E1", Level: framework.Must,
			Title: "Every refusal is a Status error: it reaches the client with a code of its own, and not as 500.",
			Why:   "The API server looks at the type of the error and does not unwrap it: a plain, wrapped or aggregate error becomes an internal server error of unknown reason, which clients try again.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/69801",
				"https://github.com/kubernetes/kubernetes/issues/79378",
				"https://github.com/openshift/origin/issues/9401",
			},
			Check: checkStatusErrors,
		},
		{
			ID: "E2", Level: framework.Should,
			Title:  "A refusal as forbidden or as a conflict names the resource and the object of the request.",
			Why:    "Clients and controllers read the details of the Status to learn what was refused: another resource's name sends them the wrong way.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/14011", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#NewForbidden"},
			Check:  checkDetails,
		},
		{
			ID: "E3", Level: framework.Should,
			Title:  "The message of a refusal is the same each time, without addresses of memory and without leftovers of formatting.",
			Why:    "Controllers put it into conditions and events: one that differs each time makes each try a change, and %!s(MISSING) helps nobody.",
			Source: []string{"https://pkg.go.dev/fmt#hdr-Format_errors"},
			Check:  checkMessages,
		},
	}, annotationProperties()...)
}

// asked puts a request to a plugin, in a way of its own.
type asked func(h *harness.Harness) (harness.Result, bool)

// refusals calls look with what the plugin answered to each request that it refuses, and
// how it was asked: by both phases, and then by Validate alone, with the object as it was
// before Admit. So it is where somebody behind Admit has undone what that did.
func (t *Trial) refusals(look func(h *harness.Harness, request framework.Request, result harness.Result, again asked)) {
	h, late := t.Plugin(), t.halfTime()
	plugin := h.Plugin()
	if !has(plugin, framework.Validating) && len(t.Subject.Reject) == 0 {
		t.Unsupported("it only mutates, and the Subject has no request that it refuses")
	}
	put := func(request framework.Request, how asked) bool {
		if late() {
			t.once("not all requests were looked at: half the budget was used up")
			return false
		}
		if result, ok := how(h); ok && result.Err != nil {
			look(h, request, result, how)
		}
		return true
	}
	for _, request := range t.Subject.Reject {
		if !put(request, func(h *harness.Harness) (harness.Result, bool) { return t.do(h, request) }) {
			return
		}
	}
	if !has(plugin, framework.Mutating) || !has(plugin, framework.Validating) {
		return
	}
	for _, request := range t.Seeds() {
		alone := func(h *harness.Harness) (harness.Result, bool) {
			given, ok := t.attributes(h, request, framework.Validating)
			if !ok || !h.Plugin().Handles(given.operation) {
				return harness.Result{}, false
			}
			result, thrown := t.call(h, given.record(), framework.Validating)
			return result, thrown == nil
		}
		if !put(request, alone) {
			return
		}
	}
}

func checkStatusErrors(t *Trial) {
	t.refusals(func(_ *harness.Harness, request framework.Request, result harness.Result, _ asked) {
		t.Reached()
		// The very type counts, as in responsewriters.ErrorToAPIStatus.
		_, status := result.Err.(apierrors.APIStatus)
		switch code := result.Status.Code; {
		case !status:
			t.Errorf("%s: the plugin refuses with a %T, from which the API server makes %d %s (%s): return admission.NewForbidden or one of k8s.io/apimachinery/pkg/api/errors",
				request, result.Err, code, result.Status.Reason, result.Status.Message)
		case result.Status.Status != metav1.StatusFailure:
			t.Errorf("%s: the plugin refuses with a Status that says %q, want %q", request, result.Status.Status, metav1.StatusFailure)
		case code < http.StatusBadRequest || code == http.StatusInternalServerError:
			t.Errorf("%s: the plugin refuses with code %d, reason %q (%s): want the code of a refusal, such as 403", request, code, result.Status.Reason, result.Status.Message)
		}
	})
}

func checkDetails(t *Trial) {
	t.refusals(func(h *harness.Harness, request framework.Request, result harness.Result, _ asked) {
		if code := result.Status.Code; code != http.StatusForbidden && code != http.StatusConflict {
			return
		}
		f, ok := t.attributes(h, request, framework.Mutating)
		if !ok {
			return
		}
		t.Reached()
		for _, wrong := range f.misnamed(result.Status.Details) {
			t.Errorf("%s (%s): refused with %d, and %s: %s", request, f, result.Status.Code, wrong, result.Status.Message)
		}
	})
}

// misnamed tells what in the details of a Status is not that of the request.
func (f fields) misnamed(details *metav1.StatusDetails) []string {
	if details == nil {
		return []string{"the Status has no details"}
	}
	var wrong []string
	differs := func(what, got string, want ...string) {
		if !slices.Contains(want, got) {
			wrong = append(wrong, fmt.Sprintf("its details name the %s %q, want %q", what, got, want[0]))
		}
	}
	resource := f.resource.Resource
	differs("group", details.Group, f.resource.Group, f.kind.Group)
	differs("kind", details.Kind, resource, f.kind.Kind, resource+"/"+f.subresource)
	names := []string{f.name}
	if accessor, err := meta.Accessor(f.object); err == nil && f.object != nil {
		names = append(names, accessor.GetName(), accessor.GetGenerateName())
	}
	if f.name == "" {
		names = append(names, "Unknown") // admission.NewForbidden, of an object without a name
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != "" && f.generated(details.Name, name) }) {
		return wrong
	}
	differs("name", details.Name, names...)
	return wrong
}

// generated reports whether a name was made from a generateName.
func (f fields) generated(name, from string) bool {
	return f.name == "" && len(name) > len(from) && name[:len(from)] == from
}

// leftovers are what should be in no message.
func leftovers() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"an address of memory":     regexp.MustCompile(`\b0x[0-9a-f]{6,}\b|\(0x[0-9a-f]+\)`),
		"a leftover of formatting": regexp.MustCompile(`%!(\w|\()`),
	}
}

func checkMessages(t *Trial) {
	unwanted, other := leftovers(), t.Plugin()
	t.refusals(func(_ *harness.Harness, request framework.Request, result harness.Result, how asked) {
		t.Reached()
		message := result.Status.Message
		for what, pattern := range unwanted {
			if found := pattern.FindString(message); found != "" {
				t.Errorf("%s: the message of the refusal has %s, %q: %s", request, what, found, message)
				return
			}
		}
		again, ok := how(other)
		if ok && again.Err != nil && again.Status.Message != message {
			t.Errorf("%s: two equal plugins refuse it with messages that differ:\n- %s\n+ %s", request, message, again.Status.Message)
		}
	})
}
