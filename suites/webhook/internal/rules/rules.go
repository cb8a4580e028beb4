// Package rules has the rules of the webhook suite, one file for each group of rules.
package rules

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// All returns every rule in the order of their checks.
func All() []check.Rule {
	return slices.Concat(protocolRules(), idempotenceRules(), fieldRules(), serverFieldRules(), ownerRules(), userValueRules(), shapeRules(), doorRules(), updateRules(),
		verdictRules(), robustRules(), annotationRules(), dryRunRules(), concurrencyRules(), securityRules(), tokenRules(), processRules(), versionRules(), serverRules())
}

// goodPractices is the page of the Kubernetes documentation about webhooks.
const goodPractices = "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/"

// changed returns a copy of an object with a change.
func changed(object map[string]any, change func(*unstructured.Unstructured)) map[string]any {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	change(u)
	return u.Object
}

// isCreate reports whether a case is the creation of an object, so that other requests can be made of it.
func isCreate(c check.Case) bool {
	return c.Request.Operation == review.OpCreate && c.Request.Subresource == "" && c.Request.Object != nil
}

// withObject returns a request with another object. A name in the request is the name in the object.
func withObject(r reach.Request, object map[string]any) reach.Request {
	r.Object = object
	return r
}

// updateOf returns the update of a stored object. Change gets the new object, and can be nil.
func updateOf(r reach.Request, old map[string]any, change func(*unstructured.Unstructured)) reach.Request {
	r.Operation, r.OldObject = review.OpUpdate, review.Stored(old)
	r.Object = review.Stored(old)
	if change != nil {
		r.Object = changed(r.Object, change)
	}
	r.Name = (&unstructured.Unstructured{Object: r.Object}).GetName()
	r.Options = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "fieldManager": "kubectl-edit"}
	return r
}

// eachObject calls f for each sample of Allow that creates an object and that the webhook allows.
func eachObject(t *check.T, f func(check.Case, check.Decision)) {
	t.EachAllowed(func(c check.Case, d check.Decision) {
		if isCreate(c) {
			f(c, d)
		}
	})
}

// addLabel adds a label that no webhook knows.
func addLabel(u *unstructured.Unstructured) {
	u.SetLabels(withEntry(u.GetLabels(), "contract.example.com/foreign", "kept"))
}

// annotate adds an annotation.
func annotate(u *unstructured.Unstructured, key, value string) {
	u.SetAnnotations(withEntry(u.GetAnnotations(), key, value))
}

// withEntry returns a copy of labels or annotations, which can be nil, with one more.
func withEntry(entries map[string]string, key, value string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, entries)
	out[key] = value
	return out
}

// eachBelow calls f for each operation of a patch that changes what a path leads to.
func eachBelow(a check.Answer, path string, f func(check.Operation)) {
	operations, _ := a.Operations()
	for _, each := range operations {
		if strings.HasPrefix(each.Path+"/", path+"/") {
			f(each)
		}
	}
}
