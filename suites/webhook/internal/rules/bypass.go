package rules

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// deniedElsewhere reports whether another webhook of the Subject denies a request, or could not decide.
func deniedElsewhere(t *check.T, r reach.Request) bool {
	return slices.ContainsFunc(t.Webhooks, func(w *check.Webhook) bool {
		if ok, _ := t.Reaches(t.Context(), w, r); !ok || w == t.Webhook {
			return false
		}
		a := t.Send(t.Context(), w, r)
		return a.NoDecision() != "" || !a.Response.Allowed
	})
}

// difference is a field with its values in two objects. Nil means that it is absent.
type difference struct {
	path []string // with keys and indices
	a, b any
}

func (d difference) pointer() string { return "/" + strings.Join(d.path, "/") }

// differences returns the fields that differ. A list of another length is one field.
func differences(a, b any, path ...string) (all []difference) {
	fieldsA, isA := a.(map[string]any)
	fieldsB, isB := b.(map[string]any)
	listA, _ := a.([]any)
	listB, _ := b.([]any)
	switch {
	case (isA || a == nil) && (isB || b == nil):
		both := map[string]any{}
		maps.Copy(both, fieldsA)
		maps.Copy(both, fieldsB)
		for key := range both {
			all = append(all, differences(fieldsA[key], fieldsB[key], append(slices.Clone(path), key)...)...)
		}
	case len(listA) > 0 && len(listA) == len(listB):
		for i := range listA {
			all = append(all, differences(listA[i], listB[i], append(slices.Clone(path), strconv.Itoa(i))...)...)
		}
	case !reflect.DeepEqual(a, b):
		all = []difference{{path, a, b}}
	}
	return all
}

// canChange reports whether an API server accepts another value of a field, as far as this is known.
func canChange(t *check.T, kind schema.GroupVersionKind, old map[string]any, of difference) bool {
	path := of.pointer()
	switch {
	case kind.Kind == "Pod" && regexp.MustCompile(`^/metadata/annotations/.*(apparmor|seccomp|config\.mirror)`).MatchString(path):
		return false
	case regexp.MustCompile(`^/metadata/(labels|annotations|finalizers|ownerReferences)(/|$)`).MatchString(path):
		return true
	case of.path[0] == "metadata", of.path[0] == "status":
		return false
	case !check.IsBuiltIn(kind):
		return mutable(t.Kinds.Schemas(kind, of.path))
	}
	switch kind.Kind {
	case "Pod":
		return regexp.MustCompile(`^/spec/(containers|initContainers)/\d+/image$`).MatchString(path)
	case "PersistentVolumeClaim", "Job": // it depends on more than the field
		return false
	case "CronJob", "Ingress", "NetworkPolicy", "Role", "ClusterRole":
		return true
	}
	fixed, _, known := immutable(old)
	return known && !fixed.MatchString(path) && (kind.Kind != "Service" || !regexp.MustCompile(`^/spec/(ipFamilies|loadBalancerClass|healthCheckNodePort)`).MatchString(path))
}

// mutable reports whether no rule of its schemas is about changes of a field, the last one. It is false for a field without a schema.
func mutable(schemas []map[string]any) bool {
	changes := func(schema map[string]any) bool {
		return strings.Contains(fmt.Sprint(schema["x-kubernetes-validations"]), "oldSelf")
	}
	return len(schemas) > 0 && !slices.ContainsFunc(schemas, changes) && !strings.Contains(fmt.Sprint(schemas[len(schemas)-1]), "oldSelf")
}

func checkUpdates(t *check.T) {
	t.EachDenied(func(c check.Case, _ check.Decision) { checkRemoval(t, c) })
	checkDoors(t, "fields that are known to be mutable", updateDoors)
}

// checkRemoval removes the field that a denied update changes, if the change back is denied too, so that the field is immutable.
func checkRemoval(t *check.T, c check.Case) {
	r := c.Sample
	changes := differences(r.OldObject, r.Object)
	if r.Operation != review.OpUpdate || r.Subresource != "" || len(changes) != 1 || changes[0].a == nil || changes[0].b == nil || check.IsBuiltIn(r.Kind) {
		return
	}
	path := changes[0].path
	schemas := t.Kinds.Schemas(r.Kind, path)
	if !mutable(schemas) || required(schemas, path) {
		return
	}
	without := t.AfterMutation(withObject(r, changed(r.Object, func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, path...) })))
	if _, has, _ := unstructured.NestedFieldNoCopy(without.Object, path...); has {
		return // a webhook or a default sets it
	}
	back, same := r, withObject(r, r.OldObject)
	back.Object, back.OldObject = r.OldObject, r.Object
	if d, ok := t.Decide(t.AfterMutation(same)); !ok || !d.Response.Allowed || !t.Called(without) {
		return
	}
	if d, ok := t.Decide(t.AfterMutation(back)); !ok || d.Response.Allowed {
		return
	}
	t.Reached()
	if d, ok := t.Decide(without); ok && d.Response.Allowed && !deniedElsewhere(t, without) {
		t.Errorf("%s: no change of %s is allowed, but its removal is", c, changes[0].pointer())
	}
}

// required reports whether a field of a custom resource must be there, or has a default.
func required(schemas []map[string]any, path []string) bool {
	parent, field := schemas[len(schemas)-2], schemas[len(schemas)-1]
	names, _ := parent["required"].([]any)
	return slices.Contains(names, any(path[len(path)-1])) || field["default"] != nil
}

// updateDoors returns the update of the fixed object to the one that is denied, if an API server accepts it.
func updateDoors(t *check.T, c check.Case, fixed map[string]any) []door {
	stored := t.AfterMutation(withObject(c.Sample, fixed)).Object
	defect := updateOf(c.Request, stored, func(u *unstructured.Unstructured) { u.Object = review.Stored(c.Request.Object) })
	for _, each := range differences(defect.OldObject, defect.Object) {
		if !canChange(t, c.Request.Kind, defect.OldObject, each) {
			return nil
		}
	}
	return []door{{sound: t.AfterMutation(updateOf(c.Request, stored, addLabel)), defect: t.AfterMutation(defect), must: true}}
}

// nearImages returns creations with an image of another registry whose name is like the one that the Fix names, if the webhook
// denies unknown registries.
func nearImages(t *check.T, c check.Case, fixed map[string]any) (all []door) {
	changes := differences(c.Sample.Object, fixed)
	if len(changes) != 1 || changes[0].path[len(changes[0].path)-1] != "image" {
		return nil
	}
	with := func(image string) reach.Request {
		other := c
		other.Sample.Object, other.Fix = fixed, encoded([]any{map[string]any{"op": "replace", "path": changes[0].pointer(), "value": image}})
		object, err := t.Fixed(other)
		if err != nil {
			object = c.Sample.Object // denied
		}
		return t.AfterMutation(withObject(c.Sample, object))
	}
	denies := func(image string) bool {
		d, ok := t.Decide(with(image))
		return ok && !d.Response.Allowed
	}
	bad, _ := registry(changes[0].a)
	host, rest := registry(changes[0].b)
	if host == bad || rest == "" || !denies("registry.contract.example/"+rest) {
		return nil
	}
	name, port, hasPort := strings.Cut(host, ":")
	near := []string{strings.TrimSuffix(name+".evil.example:"+port, ":") + "/" + rest, "evil-" + host + "/" + rest}
	if !hasPort && denies(bad+"/"+rest) {
		near = append(near, bad+"/"+host+"/"+rest)
	}
	for _, image := range near {
		all = append(all, door{sound: t.AfterMutation(withObject(c.Sample, fixed)), defect: with(image), instead: fmt.Sprintf(" with the image %s", image)})
	}
	return all
}

// registry splits an image into the host of its registry and the rest.
func registry(image any) (host, rest string) {
	text, _ := image.(string)
	host, rest, _ = strings.Cut(text, "/")
	if rest == "" || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "docker.io", text
	}
	return host, rest
}

func checkServiceAccounts(t *check.T) {
	t.EachDenied(func(c check.Case, _ check.Decision) {
		if !reflect.DeepEqual(c.Sample.User, review.User()) {
			return
		}
		r := t.AfterMutation(by(c.Sample, "contract", "default"))
		if !t.Called(r) {
			return
		}
		t.Reached()
		if d, ok := t.Decide(r); ok && d.Response.Allowed && !deniedElsewhere(t, r) {
			t.Errorf("%s is denied for %s, but allowed for %s", c, c.Sample.User.Name, r.User.Name)
		}
	})
	if !t.HasReached() && !t.Over() {
		t.Unsupported("the webhook is not called for a service account with a sample of Reject that names no User, or denies none")
	}
}
