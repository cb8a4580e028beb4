package harness_test

import (
	"fmt"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/apis/example/install"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
)

// line is what identifies attributes, in one line.
func line(a admission.Attributes) string {
	return fmt.Sprintf("%s %s %s/%s ns=%q name=%q new=%T old=%T options=%T dry=%t user=%s", a.GetOperation(), a.GetKind(), a.GetResource(), a.GetSubresource(),
		a.GetNamespace(), a.GetName(), a.GetObject(), a.GetOldObject(), a.GetOperationOptions(), a.IsDryRun(), a.GetUserInfo().GetName())
}

// TestAttributes compares with what k8s.io/apiserver/pkg/endpoints/handlers makes.
func TestAttributes(t *testing.T) {
	const pods = "/v1, Kind=Pod /v1, Resource=pods/"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "test"}}
	deployment.Spec.Paused = true
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "test"}}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "test"}}
	tests := []struct {
		name    string
		request framework.Request
		phase   framework.Phase
		want    string
	}{
		{"create", framework.Create(pod("p")), framework.Mutating,
			`CREATE ` + pods + ` ns="test" name="p" new=*v1.Pod old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"create without a namespace and a name", framework.Create(bare), framework.Mutating,
			`CREATE ` + pods + ` ns="default" name="" new=*v1.Pod old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"its validation has a name", framework.Create(bare), framework.Validating,
			`CREATE ` + pods + ` ns="default" name="p-bcdfg" new=*v1.Pod old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"create of a namespace", framework.Create(namespace), framework.Mutating,
			`CREATE /v1, Kind=Namespace /v1, Resource=namespaces/ ns="n" name="n" new=*v1.Namespace old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"delete of a namespace", framework.Delete(namespace), framework.Mutating,
			`DELETE /v1, Kind=Namespace /v1, Resource=namespaces/ ns="n" name="n" new=<nil> old=*v1.Namespace options=*v1.DeleteOptions dry=false user=admissiontest`},
		{"cluster-scoped", framework.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}), framework.Mutating,
			`CREATE /v1, Kind=Node /v1, Resource=nodes/ ns="" name="n" new=*v1.Node old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"update as a dry run", framework.UpdateWith(pod("p"), func(p *corev1.Pod) { p.Spec.NodeName = "n" }).WithDryRun(), framework.Mutating,
			`UPDATE ` + pods + ` ns="test" name="p" new=*v1.Pod old=*v1.Pod options=*v1.UpdateOptions dry=true user=admissiontest`},
		{"create on update", framework.CreateOnUpdate(pod("p")).As("jane"), framework.Mutating,
			`CREATE ` + pods + ` ns="test" name="p" new=*v1.Pod old=<nil> options=*v1.CreateOptions dry=false user=jane`},
		{"delete of a collection", framework.DeleteCollection(pod("p")), framework.Validating,
			`DELETE ` + pods + ` ns="test" name="" new=<nil> old=*v1.Pod options=*v1.DeleteOptions dry=false user=admissiontest`},
		{"connect", framework.Connect(pod("p"), "exec", &corev1.PodExecOptions{}), framework.Mutating,
			`CONNECT /v1, Kind=PodExecOptions /v1, Resource=pods/exec ns="test" name="p" new=*v1.PodExecOptions old=<nil> options=<nil> dry=false user=admissiontest`},
		{"status", framework.UpdateWith(pod("p"), func(p *corev1.Pod) { p.Status.Reason = "r" }).WithSubresource("status"), framework.Mutating,
			`UPDATE ` + pods + `status ns="test" name="p" new=*v1.Pod old=*v1.Pod options=*v1.UpdateOptions dry=false user=admissiontest`},
		{"binding", framework.Create(binding).WithSubresource("binding", pod("p")), framework.Mutating,
			`CREATE /v1, Kind=Binding /v1, Resource=pods/binding ns="test" name="p" new=*v1.Binding old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"scale", framework.UpdateWith(scale, func(s *autoscalingv1.Scale) { s.Spec.Replicas = 2 }).WithSubresource("scale", deployment), framework.Mutating,
			`UPDATE autoscaling/v1, Kind=Scale apps/v1, Resource=deployments/scale ns="test" name="d" new=*v1.Scale old=*v1.Scale options=*v1.UpdateOptions dry=false user=admissiontest`},
		{"unstructured", framework.Create(deployment).AsUnstructured(), framework.Mutating,
			`CREATE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ ns="test" name="d" new=*unstructured.Unstructured old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"another resource", framework.Create(pod("p")).WithResource(schema.GroupVersionResource{Version: "v1", Resource: "others"}), framework.Mutating,
			`CREATE /v1, Kind=Pod /v1, Resource=others/ ns="test" name="p" new=*v1.Pod old=<nil> options=*v1.CreateOptions dry=false user=admissiontest`},
		{"impossible", framework.Update(nil, pod("p")).Impossible("to see"), framework.Mutating,
			`UPDATE ` + pods + ` ns="test" name="p" new=*v1.Pod old=<nil> options=*v1.UpdateOptions dry=false user=admissiontest`},
	}
	h := harness.New(t, plugin(nil, nil))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := h.Attributes(test.request, test.phase)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, line(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func exampleScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

func worldOfExamples(t *testing.T) *fakes.World {
	t.Helper()
	return fakes.NewWorld(t, fakes.WithScheme(exampleScheme()))
}

// TestAttributesOfInternalTypes uses an API group of the API server's own.
func TestAttributesOfInternalTypes(t *testing.T) {
	internal := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: example.PodSpec{NodeName: "n"}}
	h := harness.New(t, plugin(nil, nil), harness.WithScheme(exampleScheme()), harness.WithWorld(worldOfExamples(t)))
	for _, test := range []struct {
		name    string
		request framework.Request
		want    string
	}{
		{"typed", framework.Create(internal), "*example.Pod"},
		{"unstructured", framework.Create(internal).AsUnstructured(), "*unstructured.Unstructured"},
		{"by a version", framework.Create(internal).AsVersion(examplev1.SchemeGroupVersion), "*example.Pod"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := h.Attributes(test.request, framework.Mutating)
			if err != nil {
				t.Fatal(err)
			}
			want := "CREATE example.apiserver.k8s.io/v1, Kind=Pod example.apiserver.k8s.io/v1, Resource=pods/ ns=\"default\" name=\"p\" new=" + test.want +
				" old=<nil> options=*v1.CreateOptions dry=false user=admissiontest"
			if diff := cmp.Diff(want, line(a)); diff != "" {
				t.Error(diff)
			}
			if loose, ok := a.GetObject().(*unstructured.Unstructured); ok {
				want := map[string]any{"nodeName": "n"}
				if diff := cmp.Diff(want, loose.Object["spec"]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestAttributesAreFilled looks into objects, options and the user.
func TestAttributesAreFilled(t *testing.T) {
	given := pod("p", func(p *corev1.Pod) {
		p.Namespace, p.UID, p.DeletionTimestamp = "", "u", &metav1.Time{}
	})
	before := given.DeepCopy()
	request := framework.Create(given).WithDryRun().WithUser(framework.User{Name: "jane", Extra: map[string][]string{"k": {"v"}}})
	h := harness.New(t, plugin(nil, nil))
	a, err := h.Attributes(request, framework.Mutating)
	if err != nil {
		t.Fatal(err)
	}
	object := a.GetObject().(*corev1.Pod)
	if object.Namespace != "default" || object.UID != "" || object.DeletionTimestamp != nil {
		t.Errorf("the object is not as an API server has it before admission: %v", object.ObjectMeta)
	}
	want := &metav1.CreateOptions{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "CreateOptions"}, DryRun: []string{"All"}}
	if diff := cmp.Diff(want, a.GetOperationOptions()); diff != "" {
		t.Error(diff)
	}
	a.GetUserInfo().GetExtra()["k"][0] = "changed"
	if got := request.User.Extra["k"][0]; got != "v" {
		t.Errorf("the user's extra is the Request's own: %q", got)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("the Request's object was written to:\n%s", diff)
	}
}

// TestAttributesRefused is about what cannot be resolved: one message, with what to do.
func TestAttributesRefused(t *testing.T) {
	h := harness.New(t, plugin(nil, nil))
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	for _, test := range []struct {
		name    string
		request framework.Request
		want    []string
	}{
		{"shape", framework.Update(nil, pod("p")), []string{"no old object", "no API server sends this", ".Impossible("}},
		{"nothing", framework.Create(nil), []string{"a create has no object"}},
		{"nil pointer", framework.Create((*corev1.Pod)(nil)), []string{"a create has no object"}},
		{"type", framework.Create(&example.Pod{}), []string{"*example.Pod", "harness.WithScheme(...)"}},
		{"resource", framework.Create(widget), []string{"example.com/v1, Kind=Widget", "fakes.WithMappings"}},
		{"no kind", framework.Create(&unstructured.Unstructured{Object: map[string]any{}}), []string{"no apiVersion or no kind"}},
		{"version", framework.Create(&appsv1.Deployment{}).AsVersion(schema.GroupVersion{Group: "apps", Version: "v1beta1"}), []string{"apps/v1beta1", "harness.WithScheme(...)"}},
		{"connect as create", framework.Create(pod("p")).WithSubresource("exec"), []string{`a create of the subresource "exec"`, `framework.Connect(parent, "exec", options)`}},
		{"connect as update", framework.UpdateWith(&corev1.Service{}, func(*corev1.Service) {}).WithSubresource("proxy"), []string{`framework.Connect(parent, "proxy", options)`}},
		{"connect as create of options", framework.Create(&corev1.PodAttachOptions{}).WithSubresource("attach", pod("p")), []string{`framework.Connect(parent, "attach", options)`}},
		{"verb", framework.Request{Verb: framework.VerbGet}, []string{`verb "get"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := h.Attributes(test.request, framework.Mutating)
			if err == nil {
				t.Fatal("no error")
			}
			mustHave(t, err.Error(), test.want...)
			failed := record(func(r *recorder) {
				h, err := harness.Build(r, plugin(nil, nil))
				if err != nil {
					r.Fatalf("%v", err)
				}
				h.Do(test.request)
			})
			mustHave(t, failed.fatal, test.want...)
		})
	}
	if _, err := h.Attributes(framework.Create(pod("p")), "third"); err == nil {
		t.Error("a phase that there is not is no error")
	}
}

// TestAttributesOfAnotherVersion has a scheme that can convert.
func TestAttributesOfAnotherVersion(t *testing.T) {
	v1, v2 := schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{Group: "example.com", Version: "v2"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1.WithKind("Thing"), &corev1.ConfigMap{})
	scheme.AddKnownTypeWithName(v2.WithKind("Thing"), &corev1.Secret{})
	err := scheme.AddConversionFunc(&corev1.ConfigMap{}, &corev1.Secret{}, func(from, to any, _ conversion.Scope) error {
		to.(*corev1.Secret).ObjectMeta = from.(*corev1.ConfigMap).ObjectMeta
		to.(*corev1.Secret).StringData = from.(*corev1.ConfigMap).Data
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h := harness.New(t, plugin(nil, nil), harness.WithScheme(scheme), harness.WithWorld(fakes.NewWorld(t, fakes.WithMappings(
		meta.RESTMapping{GroupVersionKind: v1.WithKind("Thing"), Resource: v1.WithResource("things"), Scope: meta.RESTScopeNamespace}))))
	given := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Thing"}, ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": "b"}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(given)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		request framework.Request
		want    string
	}{
		{"typed", framework.Create(given), "*v1.Secret"},
		{"typed to unstructured", framework.Create(given).AsUnstructured(), "*unstructured.Unstructured"},
		{"unstructured", framework.Create(&unstructured.Unstructured{Object: content}), "*unstructured.Unstructured"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := h.Attributes(test.request.AsVersion(v2), framework.Mutating)
			if err != nil {
				t.Fatal(err)
			}
			want := "CREATE example.com/v2, Kind=Thing example.com/v2, Resource=things/ ns=\"default\" name=\"c\" new=" + test.want +
				" old=<nil> options=*v1.CreateOptions dry=false user=admissiontest"
			if diff := cmp.Diff(want, line(a)); diff != "" {
				t.Error(diff)
			}
			if loose, ok := a.GetObject().(*unstructured.Unstructured); ok {
				got, _, _ := unstructured.NestedString(loose.Object, "stringData", "a")
				if got != "b" || loose.GetAPIVersion() != "example.com/v2" {
					t.Errorf("not converted: %v", loose.Object)
				}
			}
		})
	}
}
