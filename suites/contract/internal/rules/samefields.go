package rules

import (
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// sameFieldsRules returns the rule for subresources that change fields of the object.
func sameFieldsRules() []check.Rule {
	return []check.Rule{{
		ID: "S3", Name: "subresources-with-the-same-fields-are-checked", Level: framework.Should,
		Title:  "What the plugin refuses in a container, in resources or in replicas, it also refuses in the subresources that set them: ephemeralcontainers, resize and scale.",
		Why:    "Otherwise users can bypass the plugin: they add the same container with kubectl debug, or set the same number of replicas with kubectl scale.",
		Fix:    "Handle UPDATE of these subresources. The body of ephemeralcontainers and resize is the whole pod; the body of scale is a Scale.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/118640", "https://github.com/kubernetes/kubernetes/issues/127431"},
		Check:  checkSameFields,
	}}
}

// sameField is a subresource that sets fields of the object.
type sameField struct {
	subresource string
	// with returns a copy of an object with the fields of another one, reduced to what the
	// subresource can set. It returns false if one of them does not have the fields.
	with func(object, from runtime.Object) (runtime.Object, bool)
	// body returns the request of the subresource that makes the good object the bad one.
	body func(good, bad runtime.Object) framework.Request
}

func sameFieldSubresources() []sameField {
	return []sameField{
		{"ephemeralcontainers", withContainersOf, addEphemeral},
		{"resize", withResourcesOf, func(good, bad runtime.Object) framework.Request {
			return framework.Request{Object: bad, InProcess: framework.InProcess{OldObject: good}}
		}},
		{"scale", withReplicasOf, scaleTo},
	}
}

func checkSameFields(t *check.T) {
	if !t.Plugin().Plugin().Handles(admission.Update) {
		t.Unsupported("the plugin does not handle %s", admission.Update)
	}
	admit := func(request framework.Request, object runtime.Object) (stored runtime.Object, ok bool) {
		request.Object = object
		result, ok := t.Do(t.Plugin(), request)
		return result.Object, ok && result.Err == nil
	}
	eachRefusedObject(t, func(refused framework.Request, admitted runtime.Object) (found bool) {
		for _, each := range sameFieldSubresources() {
			good, ok := each.with(refused.Object, admitted)
			bad, both := each.with(refused.Object, refused.Object)
			if !ok || !both || check.Equal(good, bad) {
				continue
			}
			if _, ok := admit(refused, bad); ok {
				continue // the plugin refuses the object for other fields
			}
			stored, ok := admit(refused, good)
			if !ok {
				continue // the plugin refuses the object for other fields, too
			}
			if bad, ok = each.with(stored, bad); !ok {
				continue
			}
			found = true
			through := each.body(stored, bad)
			through.Verb, through.Subresource, through.User = framework.VerbUpdate, each.subresource, refused.User
			through.Namespace, through.Name = refused.Namespace, refused.Name
			result, ok := t.Do(t.Plugin(), through)
			if !ok {
				continue
			}
			t.Reached()
			if result.Err == nil {
				t.Errorf("%s: the plugin admits it, and refuses the same fields in %q. want: a refusal (- before, + after):\n%s", through, refused, check.Diff(through.InProcess.OldObject, through.Object))
			}
		}
		return found
	})
}

// eachRefusedObject calls f for each create or update that the plugin refuses, with the objects of
// the same type that it admits, until f returns true or half of the budget is used.
func eachRefusedObject(t *check.T, f func(refused framework.Request, admitted runtime.Object) bool) {
	late := t.HalfBudget()
	whole := func(request framework.Request) bool {
		return (request.Verb == framework.VerbCreate || request.Verb == framework.VerbUpdate) && request.Subresource == "" &&
			!objects.IsNil(request.Object) && !request.InProcess.Unstructured
	}
	for _, refused := range t.Subject.Refused() {
		for _, admitted := range t.Subject.Allow {
			if late() {
				t.LogOnce("stopped before the last request: half of the budget is used")
				return
			}
			if whole(refused) && whole(admitted) && reflect.TypeOf(refused.Object) == reflect.TypeOf(admitted.Object) && f(refused, admitted.Object) {
				break
			}
		}
	}
}

// onlyRegular are the fields of a container that an ephemeral one cannot have
// (https://pkg.go.dev/k8s.io/api/core/v1#EphemeralContainerCommon).
func onlyRegular() []string {
	return []string{"Ports", "Resources", "ResizePolicy", "RestartPolicy", "RestartPolicyRules", "LivenessProbe", "ReadinessProbe", "StartupProbe", "Lifecycle"}
}

func withContainersOf(object, from runtime.Object) (runtime.Object, bool) {
	object, from = check.Copy(object), check.Copy(from)
	_, ephemeral := check.Field(object, "Spec", "EphemeralContainers")
	containers, has := check.Field(from, "Spec", "Containers")
	if !ephemeral || !has {
		return nil, false
	}
	for i := range containers.Len() {
		for _, name := range onlyRegular() {
			if field := containers.Index(i).FieldByName(name); field.IsValid() {
				field.SetZero()
			}
		}
	}
	to, _ := check.Field(object, "Spec", "Containers")
	to.Set(containers)
	return object, true
}

// addEphemeral adds the containers of the bad pod to the good one.
func addEphemeral(good, bad runtime.Object) framework.Request {
	edited := check.Copy(good)
	containers, _ := check.Field(bad, "Spec", "Containers")
	ephemeral, _ := check.Field(edited, "Spec", "EphemeralContainers")
	for i := range containers.Len() {
		one := reflect.New(ephemeral.Type().Elem()).Elem()
		common := one.FieldByName("EphemeralContainerCommon")
		if !common.IsValid() || !containers.Index(i).CanConvert(common.Type()) {
			continue
		}
		common.Set(containers.Index(i).Convert(common.Type()))
		common.FieldByName("Name").SetString(fmt.Sprintf("debugger-%d", i))
		ephemeral.Set(reflect.Append(ephemeral, one))
	}
	return framework.Request{Object: edited, InProcess: framework.InProcess{OldObject: good}}
}

func withResourcesOf(object, from runtime.Object) (runtime.Object, bool) {
	object, from = check.Copy(object), check.Copy(from)
	containers, _ := check.Field(from, "Spec", "Containers")
	to, has := check.Field(object, "Spec", "Containers")
	if _, pod := check.Field(object, "Spec", "EphemeralContainers"); !pod || !has || containers.Len() == 0 {
		return nil, false
	}
	for i := range to.Len() {
		to.Index(i).FieldByName("Resources").Set(containers.Index(min(i, containers.Len()-1)).FieldByName("Resources"))
	}
	return object, true
}

func withReplicasOf(object, from runtime.Object) (runtime.Object, bool) {
	object, from = check.Copy(object), check.Copy(from)
	replicas, has := check.Field(from, "Spec", "Replicas")
	if !has {
		return nil, false
	}
	to, _ := check.Field(object, "Spec", "Replicas")
	to.Set(replicas)
	return object, true
}

// scaleTo scales the good object to the replicas of the bad one.
func scaleTo(good, bad runtime.Object) framework.Request {
	scale := func(of runtime.Object) *autoscalingv1.Scale {
		one := &autoscalingv1.Scale{ObjectMeta: nameOf(of), Spec: autoscalingv1.ScaleSpec{Replicas: 1}} // the default
		replicas, _ := check.Field(of, "Spec", "Replicas")
		if replicas.Kind() == reflect.Pointer {
			replicas = replicas.Elem()
		}
		if replicas.IsValid() && replicas.CanInt() {
			one.Spec.Replicas = int32(replicas.Int()) //nolint:gosec // replicas are int32
		}
		return one
	}
	return framework.Request{Object: scale(bad), InProcess: framework.InProcess{OldObject: scale(good), Parent: good}}
}
