package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// checkStable begins with objects that are defaulted already, as those of an API server
// are: what a second round trip then changes is what Admit has left undone.
func checkStable(t *check.T) {
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		if objects.IsNil(invocation.Attributes.Object) {
			return
		}
		through := wire{invocation.Harness.ObjectInterfaces(invocation.Attributes.Object), invocation.Attributes.Kind.GroupVersion()}
		begin, err := through.trip(invocation.Attributes.Object)
		if err == nil {
			var again runtime.Object
			if again, err = through.trip(begin); err == nil && !check.Equal(begin, again) {
				err = fmt.Errorf("encoded and decoded twice, it is another one than after the first time:\n%s", check.Diff(begin, again))
			}
		}
		if err != nil {
			t.Logf("%s is not looked at: %v", invocation.Request, err)
			return
		}
		invocation.Attributes.Object = begin
		result, ok := invocation.Admit()
		if !ok || check.Equal(result.Before, result.Object) {
			return
		}
		back, err := through.trip(result.Object)
		if err != nil {
			t.Errorf("%s: Admit has made an object that cannot be encoded and decoded: %v", invocation.Request, err)
			return
		}
		t.Reached()
		if !check.Equal(result.Object, back) {
			t.Errorf("%s: what Admit left is another object after encoding as %s, defaulting and decoding: expected it to set what defaulting would (- as Admit left it, + as it comes back):\n%s",
				invocation.Request, through.version, check.Diff(result.Object, back))
		}
	})
}

// wire carries objects as an API server does: in an external version, with defaults.
type wire struct {
	objects admission.ObjectInterfaces
	version schema.GroupVersion
}

// trip encodes a copy of an object, decodes and defaults it, in the object's own type.
func (w wire) trip(object runtime.Object) (runtime.Object, error) {
	if loose, ok := object.(*unstructured.Unstructured); ok {
		data, err := loose.MarshalJSON()
		if err != nil {
			return nil, err
		}
		back := &unstructured.Unstructured{}
		return back, back.UnmarshalJSON(data)
	}
	kinds, _, err := w.objects.GetObjectTyper().ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	hub := slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		return kind.Version == runtime.APIVersionInternal
	})
	external := check.Copy(object)
	if hub {
		if external, err = w.objects.GetObjectConvertor().ConvertToVersion(external, w.version); err != nil {
			return nil, err
		}
		if kinds, _, err = w.objects.GetObjectTyper().ObjectKinds(external); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(external)
	if err != nil {
		return nil, err
	}
	back, err := w.objects.GetObjectCreater().New(kinds[0])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, back); err != nil {
		return nil, err
	}
	w.objects.GetObjectDefaulter().Default(back)
	if hub {
		internal := schema.GroupVersion{Group: w.version.Group, Version: runtime.APIVersionInternal}
		if back, err = w.objects.GetObjectConvertor().ConvertToVersion(back, internal); err != nil {
			return nil, err
		}
	}
	back.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	return back, nil
}
