package fence

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// of returns parameters of a kind in a namespace.
func of(t *testing.T, f *Fences, policy string, kind schema.GroupVersionKind, namespace string) install.Param {
	t.Helper()
	res, err := f.Client.Resources.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	return install.Param{Policy: policy, Kind: kind, Resource: res, Namespace: namespace}
}

func policyPlugins() []string {
	return []string{install.KindValidatingPolicy, install.KindMutatingPolicy}
}

// The wait proves that both plugins see a parameter, its change, and its end.
func TestWaitForParams(t *testing.T) {
	f := fences(t, "params", testserver.Own(t), hook.Options{}) // at its end, the API server stops reading the kind
	scope, err := f.Install.NewScope(t.Context(), "at-params-001", hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	var all []install.Param
	for _, policy := range policyPlugins() {
		all = append(all, of(t, f, policy, kind, scope.ID))
	}
	object := client.Object{Resource: all[0].Resource, Namespace: scope.ID, Name: "limit"}
	manifest := func(value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "limit"}, "data": map[string]any{"value": value}}
	}
	many := func() (err error) {
		for n := range partSize + 1 {
			one := object
			one.Name = fmt.Sprintf("many%d", n)
			_, failed := f.Client.Create(t.Context(), one, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": one.Name}})
			err = errors.Join(err, failed)
		}
		return err
	}
	for step, write := range []func() error{
		func() error { return nil },
		func() error { _, err := f.Client.Create(t.Context(), object, manifest("a")); return err },
		func() error { _, err := f.Client.Update(t.Context(), object, manifest("b")); return err },
		func() error { return f.Client.Delete(t.Context(), object) },
		func() error { _, err := f.Client.Create(t.Context(), object, manifest("c")); return err },
		many,
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := f.WaitForParams(t.Context(), all); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
}

// What the plugins answer is compared with what there is.
func TestUnseen(t *testing.T) {
	t.Parallel()
	const policy = install.KindValidatingPolicy
	p := install.Param{Policy: policy, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}}
	one := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "limit", UID: "u", ResourceVersion: "7"}}
	const warning = "Validation failed for ValidatingAdmissionPolicy 'a' with binding 'b': param u "
	const denied = "leases \"a\" is forbidden: ValidatingAdmissionPolicy 'at-x-fence-%s' with binding 'b' denied request: failed to configure policy: %s"
	for name, test := range map[string]struct {
		warnings  []string
		annotated string
		refused   string
		current   []metav1.PartialObjectMetadata
		want      string
	}{
		"none":                {want: ""},
		"seen":                {warnings: []string{"other", warning + "7"}, current: []metav1.PartialObjectMetadata{one}},
		"seen later":          {annotated: "10", current: []metav1.PartialObjectMetadata{one}},
		"not seen":            {warnings: []string{"other"}, current: []metav1.PartialObjectMetadata{one}, want: "a " + policy + " does not see the parameter Limit limit"},
		"later, not a number": {annotated: "x", current: []metav1.PartialObjectMetadata{one}, want: "a " + policy + " sees an old version of the parameter Limit limit"},
		"old":                 {annotated: "6", current: []metav1.PartialObjectMetadata{one}, want: "a " + policy + " sees an old version of the parameter Limit limit"},
		"gone":                {warnings: []string{warning + "7"}, want: "a " + policy + " still has a parameter of kind Limit, which does not exist any more"},
		"refused by another":  {refused: fmt.Sprintf(denied, "other", "no params found"), warnings: []string{warning + "7"}, current: []metav1.PartialObjectMetadata{one}},
		"kind of another":     {refused: fmt.Sprintf(denied, "other", kindUnknown), want: "a " + policy + " cannot read parameters of kind Limit: "},
		"own kind":            {refused: fmt.Sprintf(denied, install.ReaderPrefix+"1", kindUnknown), want: "a " + policy + " cannot read parameters of kind Limit: failed to configure policy: " + kindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := framework.Result{Warnings: test.warnings}
			answer.Status.Code, answer.Status.Message = 201, test.refused
			if test.refused != "" {
				answer.Status.Code = 422
			}
			answer.Object = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{paramAnnotation + "u": test.annotated}}}}
			if test.annotated == "" {
				answer.Object = nil
			}
			if got := unseen(p, answer, test.current); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if why := whyUnseen(kindUnknown); !strings.Contains(why, "kubernetes/kubernetes#124237") {
		t.Errorf("got %q, want the issue", why)
	}
}

// After the last policy with a built-in paramKind is gone, the API server never reads that kind again. The
// wait says so, and what is known about it.
func TestParamsOfAStoppedInformer(t *testing.T) {
	f := fences(t, "stopped", testserver.Own(t), hook.Options{})
	scope, err := f.Install.NewScope(t.Context(), "at-stopped-001", hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "PodTemplate"} // kube-apiserver itself does not read it
	p := of(t, f, install.KindValidatingPolicy, kind, scope.ID)
	readers := func(f *Fences) error { return f.WaitForParams(t.Context(), []install.Param{p}) }
	if err := readers(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Install.Uninstall(t.Context(), f.scope); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(t.Context(), Kinds{ValidatingPolicies: true}); err != nil {
		t.Fatal(err)
	}
	again := &Fences{Client: f.Client, Install: f.Install, HooksErr: f.HooksErr, Limit: f.Limit, scope: f.scope}
	again.count.Store(100)
	if err := readers(again); err != nil {
		t.Fatalf("there is no parameter, and none is seen: %v", err)
	}
	template := map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"name": "limit"}, "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}}
	if _, err := f.Client.Create(t.Context(), client.Object{Resource: p.Resource, Namespace: p.Namespace, Name: "limit"}, template); err != nil {
		t.Fatal(err)
	}
	err = readers(again)
	want := "timed out after " + paramLimit.String() + ": a ValidatingAdmissionPolicy does not see the parameter PodTemplate limit: "
	if !errors.Is(err, framework.ErrTimeout) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "kubernetes/kubernetes#130887") {
		t.Errorf("got %v, want %q and the issue", err, want)
	}
}
