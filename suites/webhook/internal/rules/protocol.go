package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

const reviewSource = "https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go"

// protocolRules returns the rules for the form of answers.
func protocolRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-PROTO-1", Name: "answers-repeat-the-uid", Level: framework.Must,
			Title:  "Every answer repeats the uid of the request: if the webhook allows, if it denies, and if it fails.",
			Why:    "The API server refuses an answer with another uid. With failurePolicy Ignore it then ignores the denial.",
			Fix:    "Copy request.uid to response.uid on every path, also on error paths.",
			Source: []string{"https://github.com/hashicorp/vault-k8s/pull/363", "https://github.com/kubernetes-sigs/controller-runtime/issues/1272", reviewSource},
			Check:  checkUID,
		},
		{
			ID: "WH-PROTO-2", Name: "answers-have-the-version-of-the-review", Level: framework.Must,
			Title:  "The answer has the apiVersion and kind of the review, for each version in admissionReviewVersions, and the same decision in each version.",
			Why:    "The API server refuses an answer of another version than the review: it does not convert reviews.",
			Fix:    "Copy apiVersion and kind of the review that was received, or list only the versions that the webhook answers.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/80231", "https://github.com/kubevirt/kubevirt/pull/5300", reviewSource, "https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/util/webhook/client.go"},
			Check:  checkReviewVersion,
		},
		{
			ID: "WH-PROTO-3", Name: "decisions-are-http-200", Level: framework.Must,
			Title:  "A decision is HTTP 200 with one JSON AdmissionReview that has a response. It has at most 3 MiB, plus twice the size of the review. Another status means that the webhook could not decide.",
			Why:    "With failurePolicy Ignore, the API server ignores an answer with another status: a denial as HTTP 403 is bypassed. It keeps large answers in memory.",
			Fix:    "Write HTTP 200 and response.allowed: false for a denial.",
			Source: []string{"https://github.com/kubernetes-sigs/controller-runtime/issues/2662", "https://github.com/gardener/gardener/issues/7013"},
			Check:  checkStatus,
		},
		{
			ID: "WH-PROTO-4", Name: "patch-and-patchtype-belong-together", Level: framework.Must,
			Title:  "A mutating webhook sets patch and patchType: JSONPatch, both or neither. A validating one sets neither.",
			Why:    "The API server refuses the answer otherwise, and the request fails.",
			Fix:    "Set patchType only if there is a patch, and encode the patch as a JSON array of operations.",
			Source: []string{"https://github.com/csi-addons/volume-replication-operator/pull/90", "https://github.com/antrea-io/antrea/pull/2295", reviewSource},
			Check:  checkPatchType,
		},
		{
			ID: "WH-PROTO-5", Name: "patches-apply", Level: framework.Must,
			Title:  "The patch can be applied to the object, whatever optional parts are absent or have unusual names.",
			Why:    "If a patch cannot be applied, the client gets status 500, also with failurePolicy Ignore.",
			Fix:    "Add the parent before its first child, escape ~ and / in paths, and make the patch from the object of the request.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/90623", "https://github.com/kyverno/kyverno/issues/1340"},
			Check:  checkPatchApplies,
		},
	}
}

// checkUID sends reviews that the webhook allows, denies and cannot decode.
func checkUID(t *check.T) {
	for _, c := range t.Cases() {
		requests := map[string]reach.Request{"": c.Request}
		if isCreate(c) {
			wrongType := changed(c.Request.Object, func(u *unstructured.Unstructured) { u.Object["spec"] = int64(7) })
			requests[" with a number as spec"] = withObject(c.Request, wrongType)
			connect := c.Request
			connect.Operation, connect.Options = review.OpConnect, nil
			requests[" as CONNECT"] = connect
			other := withObject(c.Request, map[string]any{"apiVersion": "contract.example.com/v1", "kind": "Other", "metadata": map[string]any{"name": "other"}})
			other.Kind.Group, other.Kind.Version, other.Kind.Kind = "contract.example.com", "v1", "Other"
			other.Resource.Group, other.Resource.Version, other.Resource.Resource = "contract.example.com", "v1", "others"
			requests[" of another kind"] = other
		}
		for what, r := range requests {
			body := t.Webhook.Review(r, "v1")
			want := body["request"].(map[string]any)["uid"]
			a := t.PostReview(body)
			if a.NoDecision() != "" || a.APIVersion != "admission.k8s.io/v1" {
				continue
			}
			t.Reached()
			if a.Response.UID != want {
				t.Errorf("%s%s, %s: response.uid is not the uid of the request\ngot %q, want %q", c, what, word(a), a.Response.UID, want)
			}
		}
	}
}

func word(a check.Answer) string {
	if a.Response.Allowed {
		return "allowed"
	}
	return "denied"
}

func checkReviewVersion(t *check.T) {
	for _, c := range t.Cases() {
		var first check.Decision
		for i, version := range t.Versions() {
			d, ok := t.DecideReview(t.Webhook.Review(c.Request, version))
			if !ok {
				continue
			}
			t.Reached()
			if want := "admission.k8s.io/" + version; !hasVersion(version, d.APIVersion, want) || !hasVersion(version, d.Kind, "AdmissionReview") {
				t.Errorf("%s: the answer to a review with apiVersion %s has apiVersion %q and kind %q, want %q and AdmissionReview", c, want, d.APIVersion, d.Kind, want)
			}
			if i == 0 {
				first = d
			} else if text := t.Difference(first, d); text != "" {
				t.Differs("%s: the answer to a review of version %s differs from version %s: %s", c, version, t.Versions()[0], text)
			}
		}
	}
}

// hasVersion reports whether the apiVersion or the kind of an answer is the expected one. In an answer to a v1beta1 review it can be
// absent: the API server decodes the answer as what it expects.
func hasVersion(version, got, want string) bool {
	return got == want || version == "v1beta1" && got == ""
}

func checkStatus(t *check.T) {
	for _, c := range t.Cases() {
		a := t.Send(t.Context(), t.Webhook, c.Request)
		t.Reached()
		if why := a.NoDecision(); why != "" {
			more := ""
			if a.Status >= 300 && a.Err == nil {
				more = ": it is bypassed when failurePolicy is Ignore"
			}
			t.Errorf("%s: no decision%s: %s", c, more, why)
			if a.Err != nil {
				return // the other requests would wait too
			}
		}
	}
}

func checkPatchType(t *check.T) {
	for _, c := range t.Cases() {
		a := t.Send(t.Context(), t.Webhook, c.Request)
		if a.NoDecision() != "" {
			continue
		}
		t.Reached()
		kind := "no patchType"
		if a.Response.PatchType != nil {
			kind = fmt.Sprintf("patchType %q", *a.Response.PatchType)
		}
		hasPatch := len(a.Response.Patch) > 0
		switch {
		case t.Kind == check.Validating && (hasPatch || a.Response.PatchType != nil):
			t.Errorf("%s: a validating webhook answers with a patch of %d bytes and %s; want neither", c, len(a.Response.Patch), kind)
		case hasPatch != (a.Response.PatchType != nil):
			t.Errorf("%s: the answer has a patch of %d bytes and %s; want both or neither", c, len(a.Response.Patch), kind)
		case hasPatch && *a.Response.PatchType != "JSONPatch":
			t.Errorf("%s: the answer has %s; want JSONPatch", c, kind)
		}
		operations, err := a.Operations()
		if err != nil {
			t.Errorf("%s: %v", c, err)
		}
		for _, each := range operations {
			if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, each.Op) {
				t.Errorf("%s: the patch has operation %q; want one of RFC 6902", c, each.Op)
			}
		}
	}
}

// checkPatchApplies sends variants of each object.
func checkPatchApplies(t *check.T) {
	for _, c := range t.Webhook.Allow {
		variants := map[string]func(*unstructured.Unstructured){"": func(*unstructured.Unstructured) {}}
		if isCreate(c) {
			variants[" without labels"] = func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "metadata", "labels") }
			variants[" without annotations"] = func(u *unstructured.Unstructured) {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
			}
			variants[" with empty maps"] = func(u *unstructured.Unstructured) {
				metadata := u.Object["metadata"].(map[string]any)
				metadata["labels"], metadata["annotations"] = map[string]any{}, map[string]any{}
			}
			variants[" with / and ~ in a key"] = func(u *unstructured.Unstructured) {
				annotate(u, "contract.example.com/a", "1")
				annotate(u, "a~b", "2")
			}
		}
		for what, change := range variants {
			r := c.Request
			if r.Object != nil {
				r = withObject(r, changed(r.Object, change))
			}
			if a := t.Send(t.Context(), t.Webhook, r); t.Called(r) && a.NoDecision() == "" && a.Response.Allowed {
				t.Reached()
				if err := t.CanApply(r.Object, a); err != nil {
					t.Errorf("%s%s: %v", c, what, err)
				}
			}
		}
	}
}

// decodes reports whether data is JSON.
func decodes(data json.RawMessage) (value any, ok bool) {
	return value, json.Unmarshal(data, &value) == nil
}
