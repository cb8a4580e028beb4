package rules

import (
	"fmt"
	"reflect"

	"github.com/admissiontest/admissiontest/suites/contract/internal/reflection"

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
	// replace returns two objects. good is the refused object with the fields of the admitted
	// object. bad is the refused object reduced to what the subresource can set. It returns false
	// if the objects do not have the fields.
	replace func(refused, admitted runtime.Object) (good, bad runtime.Object, ok bool)
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
	admits := func(request framework.Request, object runtime.Object) bool {
		request.Object = object
		result, ok := t.Do(t.Plugin(), request)
		return ok && result.Err == nil
	}
	eachRefusedObject(t, func(refused framework.Request, admitted runtime.Object) (found bool) {
		for _, each := range sameFieldSubresources() {
			good, bad, ok := each.replace(refused.Object, admitted)
			if !ok || reflection.Equal(good, bad) || admits(refused, bad) || !admits(refused, good) {
				continue // the plugin refuses the object for another reason than these fields
			}
			found = true
			through := each.body(good, bad)
			through.Verb, through.Subresource, through.User = framework.VerbUpdate, each.subresource, refused.User
			through.Namespace, through.Name = refused.Namespace, refused.Name
			result, ok := t.Do(t.Plugin(), through)
			if !ok {
				continue
			}
			t.Reached()
			if result.Err == nil {
				t.Errorf("%s: the plugin admits it, and refuses the same fields in %q. want: a refusal (- before, + after):\n%s", through, refused, reflection.Diff(through.InProcess.OldObject, through.Object))
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

// fieldOf returns a field of an object, such as Spec.Containers. It returns false if the type does
// not have it.
func fieldOf(object runtime.Object, names ...string) (reflect.Value, bool) {
	value := reflect.ValueOf(object).Elem()
	for _, name := range names {
		if value.Kind() != reflect.Struct {
			return reflect.Value{}, false
		}
		if value = value.FieldByName(name); !value.IsValid() {
			return reflect.Value{}, false
		}
	}
	return value, true
}

// onlyRegular are the fields of a container that an ephemeral one cannot have
// (https://pkg.go.dev/k8s.io/api/core/v1#EphemeralContainerCommon).
func onlyRegular() []string {
	return []string{"Ports", "Resources", "ResizePolicy", "RestartPolicy", "RestartPolicyRules", "LivenessProbe", "ReadinessProbe", "StartupProbe", "Lifecycle"}
}

func withContainersOf(refused, admitted runtime.Object) (good, bad runtime.Object, ok bool) {
	good, bad = reflection.Copy(refused), reflection.Copy(refused)
	_, ephemeral := fieldOf(good, "Spec", "EphemeralContainers")
	from, has := fieldOf(reflection.Copy(admitted), "Spec", "Containers")
	if !ephemeral || !has {
		return nil, nil, false
	}
	to, _ := fieldOf(good, "Spec", "Containers")
	to.Set(from)
	for _, object := range []runtime.Object{good, bad} {
		containers, _ := fieldOf(object, "Spec", "Containers")
		for i := range containers.Len() {
			for _, name := range onlyRegular() {
				if field := containers.Index(i).FieldByName(name); field.IsValid() {
					field.SetZero()
				}
			}
		}
	}
	return good, bad, true
}

// addEphemeral adds the containers of the bad pod to the good one.
func addEphemeral(good, bad runtime.Object) framework.Request {
	edited := reflection.Copy(good)
	containers, _ := fieldOf(bad, "Spec", "Containers")
	ephemeral, _ := fieldOf(edited, "Spec", "EphemeralContainers")
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

func withResourcesOf(refused, admitted runtime.Object) (good, bad runtime.Object, ok bool) {
	good, bad = reflection.Copy(refused), reflection.Copy(refused)
	from, _ := fieldOf(reflection.Copy(admitted), "Spec", "Containers")
	to, has := fieldOf(good, "Spec", "Containers")
	if _, pod := fieldOf(good, "Spec", "EphemeralContainers"); !pod || !has || from.Len() == 0 {
		return nil, nil, false
	}
	for i := range to.Len() {
		to.Index(i).FieldByName("Resources").Set(from.Index(min(i, from.Len()-1)).FieldByName("Resources"))
	}
	return good, bad, true
}

func withReplicasOf(refused, admitted runtime.Object) (good, bad runtime.Object, ok bool) {
	good, bad = reflection.Copy(refused), reflection.Copy(refused)
	from, has := fieldOf(reflection.Copy(admitted), "Spec", "Replicas")
	if !has {
		return nil, nil, false
	}
	to, _ := fieldOf(good, "Spec", "Replicas")
	to.Set(from)
	return good, bad, true
}

// scaleTo scales the good object to the replicas of the bad one.
func scaleTo(good, bad runtime.Object) framework.Request {
	scale := func(of runtime.Object) *autoscalingv1.Scale {
		one := &autoscalingv1.Scale{ObjectMeta: nameOf(of), Spec: autoscalingv1.ScaleSpec{Replicas: 1}} // the default
		replicas, _ := fieldOf(of, "Spec", "Replicas")
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
