package harness_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// TestNoFieldIsIgnored sets each field of a Request: the plugin sees it, or the
// Request is refused with the name of the field.
func TestNoFieldIsIgnored(t *testing.T) {
	h := harness.New(t, plugin(nil, nil))
	// What the rest of the Request must be, so that the value of a field is possible.
	deployment := func() *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	}
	edits := map[string][2]framework.Request{
		"Verb":                        {framework.CreateOnUpdate(pod("p")), func() framework.Request { r := framework.Delete(pod("p")); return r }()},
		"Kind":                        {withKind(framework.Connect(nil, "exec", pod("p")), "Pod"), withKind(framework.Connect(nil, "exec", pod("p")), "ConfigMap")},
		"Namespace":                   {framework.Create(pod("")), framework.Create(pod("")).InNamespace("other")},
		"Name":                        {framework.Create(pod("")), framework.Create(pod("")).WithName("other")},
		"Subresource":                 {framework.Create(pod("p")), framework.Create(pod("p")).WithSubresource("status")},
		"Object":                      {framework.Create(pod("p")), framework.Create(deployment())},
		"DryRun":                      {framework.Create(pod("p")), framework.Create(pod("p")).WithDryRun()},
		"User":                        {framework.Create(pod("p")), framework.Create(pod("p")).As("other")},
		"InProcess.OldObject":         {framework.Update(pod("p"), pod("p")), framework.Update(pod("p", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), pod("p"))},
		"InProcess.Parent":            {framework.Create(pod("p")), framework.Create(pod("p")).WithSubresource("x", deployment())},
		"InProcess.CreateOnUpdate":    {framework.Update(pod("p"), pod("p")), framework.CreateOnUpdate(pod("p"))},
		"InProcess.Options":           {framework.Create(pod("p")), framework.Create(pod("p")).WithOptions(&metav1.CreateOptions{FieldManager: "m"})},
		"InProcess.Resource":          {framework.Create(pod("p")), framework.Create(pod("p")).WithResource(schema.GroupVersionResource{Version: "v1", Resource: "others"})},
		"InProcess.Version":           {framework.Create(pod("p")), framework.Create(pod("p")).AsVersion(schema.GroupVersion{Version: "v9"})},
		"InProcess.Unstructured":      {framework.Create(pod("p")), framework.Create(pod("p")).AsUnstructured()},
		"InProcess.ImpossibleBecause": {framework.Update(nil, pod("p")), framework.Update(nil, pod("p")).Impossible("test")},
	}
	walked := 0
	for path, value := range fields(reflect.ValueOf(framework.Request{}), "") {
		walked++
		t.Run(path, func(t *testing.T) {
			if strings.HasPrefix(path, "HTTP.") {
				request := framework.Create(pod("p"))
				setField(reflect.ValueOf(&request).Elem(), path)
				_, err := h.Attributes(request, framework.Mutating)
				if !errors.Is(err, framework.ErrFieldNotSupported) || !strings.Contains(err.Error(), "Request."+path+":") {
					t.Errorf("error = %v, want ErrFieldNotSupported that names Request.%s", err, path)
				}
				return
			}
			edit, known := edits[path]
			if !known {
				t.Fatalf("Request.%s (%s) is new: add it here, and make the harness use or refuse it", path, value.Type())
			}
			before, after := describeAttributes(h.Attributes(edit[0], framework.Mutating)), describeAttributes(h.Attributes(edit[1], framework.Mutating))
			if before == after {
				t.Errorf("Request.%s makes no difference to the plugin: %s", path, before)
			}
		})
	}
	if walked < 20 {
		t.Errorf("walked %d fields, want all of framework.Request", walked)
	}
}

func withKind(request framework.Request, kind string) framework.Request {
	request.Kind = schema.GroupVersionKind{Version: "v1", Kind: kind}
	return request
}

// fields has every field of a Request by its path: "Verb", "HTTP.Query".
func fields(request reflect.Value, prefix string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range request.NumField() {
		name := request.Type().Field(i).Name
		if slices.Contains([]string{"HTTP", "InProcess"}, name) {
			for path, value := range fields(request.Field(i), name+".") {
				all[path] = value
			}
			continue
		}
		all[prefix+name] = request.Field(i)
	}
	return all
}

// setField sets a field to some value that is not zero.
func setField(request reflect.Value, path string) {
	for name := range strings.SplitSeq(path, ".") {
		request = request.FieldByName(name)
	}
	switch request.Kind() {
	case reflect.String:
		request.SetString("x")
	case reflect.Slice:
		request.Set(reflect.MakeSlice(request.Type(), 1, 1))
	case reflect.Map:
		request.Set(reflect.MakeMap(request.Type()))
		request.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(request.Type().Elem()))
	}
}

func describeAttributes(attributes admission.Attributes, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %v %s/%s %v %s %s %t %v %s", attributes.GetKind(), attributes.GetResource(), attributes.GetNamespace(), attributes.GetName(),
		attributes.GetSubresource(), attributes.GetOperation(), cmp.Diff(nil, attributes.GetOperationOptions()), attributes.IsDryRun(), attributes.GetUserInfo(),
		cmp.Diff(nil, attributes.GetObject())+cmp.Diff(nil, attributes.GetOldObject()))
}
