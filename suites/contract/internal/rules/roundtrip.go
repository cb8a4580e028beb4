package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// roundTripper encodes and decodes objects as an API server does: in an external version,
// with defaults.
type roundTripper struct {
	objects admission.ObjectInterfaces
	version schema.GroupVersion
}

// defaulted returns an object after a round trip. The error says why a second round trip is
// impossible or changes the object.
func (r roundTripper) defaulted(object runtime.Object) (runtime.Object, error) {
	defaulted, err := r.roundTrip(object)
	if err != nil {
		return nil, err
	}
	again, err := r.roundTrip(defaulted)
	if err != nil {
		return nil, err
	}
	if !check.Equal(defaulted, again) {
		return nil, fmt.Errorf("encode and decode it twice: the object differs from that after the first time:\n%s", check.Diff(defaulted, again))
	}
	return defaulted, nil
}

// roundTrip encodes a copy of an object, decodes it and sets defaults. The type of the
// result is that of the object.
func (r roundTripper) roundTrip(object runtime.Object) (runtime.Object, error) {
	if loose, ok := object.(*unstructured.Unstructured); ok {
		data, err := loose.MarshalJSON()
		if err != nil {
			return nil, err
		}
		back := &unstructured.Unstructured{}
		return back, back.UnmarshalJSON(data)
	}
	kinds, _, err := r.objects.GetObjectTyper().ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	hub := slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		return kind.Version == runtime.APIVersionInternal
	})
	external := check.Copy(object)
	if hub {
		if external, err = r.objects.GetObjectConvertor().ConvertToVersion(external, r.version); err != nil {
			return nil, err
		}
		if kinds, _, err = r.objects.GetObjectTyper().ObjectKinds(external); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(external)
	if err != nil {
		return nil, err
	}
	back, err := r.objects.GetObjectCreater().New(kinds[0])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, back); err != nil {
		return nil, err
	}
	r.objects.GetObjectDefaulter().Default(back)
	if hub {
		internal := schema.GroupVersion{Group: r.version.Group, Version: runtime.APIVersionInternal}
		if back, err = r.objects.GetObjectConvertor().ConvertToVersion(back, internal); err != nil {
			return nil, err
		}
	}
	back.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	return back, nil
}
