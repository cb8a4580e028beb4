package fence

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// param returns a parameter with its object.
func param(t *testing.T, f *Fences, of install.Param, namespace, name string) install.Param {
	t.Helper()
	res, err := f.Client.Resources.Of(of.Kind)
	if err != nil {
		t.Fatal(err)
	}
	of.Object = client.Object{Resource: res, Namespace: namespace, Name: name}
	return of
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
		of := install.Param{Policy: policy, Kind: kind}
		all = append(all, param(t, f, of, scope.ID, ""), param(t, f, of, scope.ID, "limit"), param(t, f, of, scope.ID, "none"))
	}
	object := all[1].Object
	manifest := func(value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "limit"}, "data": map[string]any{"value": value}}
	}
	var stale *unstructured.Unstructured
	for step, write := range []func() error{
		func() (err error) { stale, err = f.Client.Create(t.Context(), object, manifest("a")); return err },
		func() error { _, err := f.Client.Update(t.Context(), object, manifest("b")); return err },
		func() error { return f.Client.Delete(t.Context(), object) },
		func() error { _, err := f.Client.Create(t.Context(), object, manifest("c")); return err },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := f.WaitForParams(t.Context(), all); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	for _, p := range all[1:2] { // what the plugins answer is not what was there before
		answer, err := f.Client.Send(t.Context(), paramProbe(Subjects()[0], f.scope, f.binding(p).name, "limit"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := unseen(p, answer, stale), "a "+p.Policy+" sees an old version of the parameter ConfigMap limit"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := unseen(p, answer, nil), "a "+p.Policy+" still has the parameter ConfigMap limit, which does not exist any more"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
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
	p := param(t, f, install.Param{Policy: install.KindValidatingPolicy, Kind: kind}, scope.ID, "limit")
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
	again := &Fences{Client: f.Client, Install: f.Install, HooksErr: f.HooksErr, scope: f.scope}
	again.count.Store(100)
	if err := readers(again); err != nil {
		t.Fatalf("there is no parameter, and none is seen: %v", err)
	}
	template := map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"name": "limit"}, "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}}
	if _, err := f.Client.Create(t.Context(), p.Object, template); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []fmt.Stringer{paramLimit, againLimit} {
		err = readers(again)
		want := "timed out after " + limit.String() + ": a ValidatingAdmissionPolicy does not see the parameter PodTemplate limit: "
		if !errors.Is(err, framework.ErrTimeout) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "kubernetes/kubernetes#130887") {
			t.Errorf("got %v, want %q and the issue", err, want)
		}
	}
}

// A kind that the plugin does not know yet is waited for, and is another issue.
func TestUnknownParamKind(t *testing.T) {
	t.Parallel()
	refused := framework.Result{}
	refused.Status.Code = 422
	refused.Status.Message = `leases "a" is forbidden: ValidatingAdmissionPolicy 'at-x-fence-params-1' with binding 'at-x-fence-params-2' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'`
	got := unseen(install.Param{Policy: install.KindValidatingPolicy, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}}, refused, nil)
	if !strings.HasPrefix(got, "a ValidatingAdmissionPolicy cannot read parameters of kind Limit: failed to configure policy: ") || !strings.Contains(whyUnseen(got), "kubernetes/kubernetes#124237") {
		t.Errorf("got %q: %q", got, whyUnseen(got))
	}
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version, wanted string
		want            bool
	}{{"9", "10", false}, {"10", "9", true}, {"10", "10", true}, {"x", "x", true}, {"x", "y", false}, {"10", "y", false}, {"", "1", false}} {
		t.Run(test.version+" after "+test.wanted, func(t *testing.T) {
			if got := atLeast(test.version, test.wanted); got != test.want {
				t.Errorf("%q after %q: got %t, want %t", test.version, test.wanted, got, test.want)
			}
		})
	}
}
