package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
)

// step is what a plugin does in one phase.
type step func(admission.Attributes) error

type mutates struct {
	*admission.Handler
	admit step
}

func (m mutates) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return m.admit(a)
}

type validates struct {
	*admission.Handler
	validate step
}

func (v validates) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return v.validate(a)
}

type does struct {
	mutates
	validate step
}

func (d does) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return d.validate(a)
}

func nothing(admission.Attributes) error { return nil }

func create() *admission.Handler { return admission.NewHandler(admission.Create) }

// request returns a context with an audit event, and what reads the records of it.
func request(t *testing.T, level auditinternal.Level) (context.Context, func() []kubeapiserver.Record) {
	t.Helper()
	ctx := audit.WithAuditContext(t.Context())
	ac := audit.AuditContextFrom(ctx)
	if err := ac.Init(audit.RequestAuditConfig{Level: level}, nil); err != nil {
		t.Fatal(err)
	}
	return ctx, func() []kubeapiserver.Record {
		records, err := kubeapiserver.Take(ac.GetEventAnnotations())
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
}

func attributes(object runtime.Object, operation admission.Operation) admission.Attributes {
	return admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "ns", "x",
		corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, nil)
}

func objects() admission.ObjectInterfaces {
	return admission.NewObjectInterfacesFromScheme(scheme.Scheme)
}

func label(a admission.Attributes) error {
	accessor, _ := a.GetObject().(metav1.Object)
	accessor.SetLabels(map[string]string{"example.com/x": "secret value"})
	return nil
}

func admit(ctx context.Context, plugin admission.Interface, a admission.Attributes) error {
	return plugin.(admission.MutationInterface).Admit(ctx, a, objects())
}

func TestRecordsOfOneRequest(t *testing.T) {
	refuse := func(a admission.Attributes) error { return admission.NewForbidden(a, errors.New("not this one")) }
	r := new(observe.Recorder)
	first := r.Decorate(mutates{admission.NewHandler(admission.Delete), nothing}, "Deletes")
	labels := r.Decorate(does{mutates{create(), label}, refuse}, "Labels")
	idle := r.Decorate(mutates{create(), nothing}, "Idle")
	ctx, read := request(t, auditinternal.LevelMetadata)
	a := attributes(&corev1.Pod{}, admission.Create)
	if first.Handles(admission.Create) || !labels.Handles(admission.Create) {
		t.Error("a decorated plugin handles other operations than the plugin")
	}
	errs := []error{admit(ctx, labels, a), admit(ctx, idle, a)}
	a.GetReinvocationContext().SetIsReinvoke()
	errs = append(errs, admit(ctx, labels, a))
	refused := labels.(admission.ValidationInterface).Validate(ctx, a, objects())
	if errors.Join(errs...) != nil || !apierrors.IsForbidden(refused) {
		t.Fatalf("got %v and %v; want the answers of the plugins", errs, refused)
	}
	base := kubeapiserver.Record{Plugin: "Labels", Position: 1, Phase: "mutating", Operation: "CREATE", Resource: "pods", Namespace: "ns", Name: "x"}
	want := []kubeapiserver.Record{base, base, base, base}
	want[0].Changed, want[0].Unhandled = []string{`metadata.labels["example.com/x"]`}, []kubeapiserver.Unhandled{{Plugin: "Deletes", Position: 0}}
	want[1].Plugin, want[1].Position = "Idle", 2
	want[2].Round, want[2].Unhandled = 1, want[0].Unhandled
	want[3].Phase, want[3].Refused = "validating", &kubeapiserver.Refusal{Code: 403, Reason: "Forbidden", Message: refused.Error()}
	got := read()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(kubeapiserver.Record{}, "Started", "Duration")); diff != "" {
		t.Errorf("records, -want +got:\n%s", diff)
	}
	for i, one := range got {
		if one.Started == 0 || one.Duration < 0 {
			t.Errorf("record %d has no time: %+v", i, one)
		}
	}
	if strings.Contains(fmt.Sprint(got), "secret value") {
		t.Errorf("the records have a value: %+v", got)
	}
}

// The record of a refusal has the code and reason that the API server responds with. It does not
// unwrap errors.
func TestRefusalsAsTheServerResponds(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("not this one"))
	for name, err := range map[string]error{
		"Status": forbidden, "no Status": errors.New("broken"), "wrapped Status": fmt.Errorf("check owner: %w", forbidden),
	} {
		t.Run(name, func(t *testing.T) {
			plugin := new(observe.Recorder).Decorate(validates{create(), func(admission.Attributes) error { return err }}, "Refuses")
			ctx, read := request(t, auditinternal.LevelMetadata)
			_ = plugin.(admission.ValidationInterface).Validate(ctx, attributes(&corev1.Pod{}, admission.Create), objects())
			response := responsewriters.ErrorToAPIStatus(err)
			want := kubeapiserver.Refusal{Code: int(response.Code), Reason: string(response.Reason), Message: err.Error()}
			if got := read(); len(got) != 1 || got[0].Refused == nil || *got[0].Refused != want {
				t.Errorf("got %+v, want one record with the refusal %+v", got, want)
			}
		})
	}
}

// A decorated plugin has the phases of the plugin.
func TestPhases(t *testing.T) {
	for name, plugin := range map[string]admission.Interface{
		"mutates": mutates{create(), nothing}, "validates": validates{create(), nothing},
		"both": does{mutates{create(), nothing}, nothing}, "neither": create(),
	} {
		t.Run(name, func(t *testing.T) {
			decorated := new(observe.Recorder).Decorate(plugin, name)
			_, wantMutates := plugin.(admission.MutationInterface)
			_, wantValidates := plugin.(admission.ValidationInterface)
			_, mutates := decorated.(admission.MutationInterface)
			_, validates := decorated.(admission.ValidationInterface)
			if mutates != wantMutates || validates != wantValidates {
				t.Errorf("decorated mutates %t, validates %t", mutates, validates)
			}
		})
	}
}

func TestPanicIsRecordedAndContinues(t *testing.T) {
	plugin := new(observe.Recorder).Decorate(mutates{create(), func(admission.Attributes) error { panic("broken") }}, "Panics")
	ctx, read := request(t, auditinternal.LevelMetadata)
	func() {
		defer func() {
			if cause := recover(); cause != "broken" {
				t.Errorf("recovered %v, want the panic of the plugin", cause)
			}
		}()
		_ = admit(ctx, plugin, attributes(&corev1.Pod{}, admission.Create))
	}()
	if got := read(); len(got) != 1 || !strings.HasPrefix(got[0].Panicked, "broken, at ") || !strings.Contains(got[0].Panicked, "(observe_test.go:") {
		t.Errorf("records %+v; want the panic and its position", got)
	}
}

// Without an audit event, or with one that is not logged, the plugin is only called.
func TestRequestThatIsNotLogged(t *testing.T) {
	called := 0
	plugin := new(observe.Recorder).Decorate(mutates{create(), func(admission.Attributes) error { called++; return nil }}, "Counts")
	ctx, read := request(t, auditinternal.LevelNone)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if err := admit(ctx, plugin, attributes(&corev1.Pod{}, admission.Create)); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); called != 2 || len(got) != 0 {
		t.Errorf("%d calls, records %v; want 2 calls and no records", called, got)
	}
}

func TestChangedPaths(t *testing.T) {
	change := func(spec map[string]any) step {
		return func(a admission.Attributes) error {
			a.GetObject().(*unstructured.Unstructured).Object["spec"] = spec
			return nil
		}
	}
	items := func(n int) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = int64(i)
		}
		return out
	}
	for name, test := range map[string]struct {
		after map[string]any
		want  []string
		more  int
	}{
		"nothing":         {map[string]any{"a": "1", "list": items(2)}, nil, 0},
		"value":           {map[string]any{"a": "2", "list": items(2)}, []string{"spec.a"}, 0},
		"removed":         {map[string]any{"a": "1"}, []string{"spec.list[0]", "spec.list[1]"}, 0},
		"added":           {map[string]any{"a": "1", "list": items(2), "b": map[string]any{"c d": "e", "f": map[string]any{}}}, []string{`spec.b["c d"]`, "spec.b.f"}, 0},
		"another type":    {map[string]any{"a": map[string]any{"b": "c"}, "list": items(2)}, []string{"spec.a"}, 0},
		"too many fields": {map[string]any{"a": "1", "list": items(pathLimit + 7)}, nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"a": "1", "list": items(2)},
			}}
			plugin := new(observe.Recorder).Decorate(mutates{create(), change(test.after)}, "Changes")
			ctx, read := request(t, auditinternal.LevelMetadata)
			if err := admit(ctx, plugin, attributes(object, admission.Create)); err != nil {
				t.Fatal(err)
			}
			got := read()
			if len(got) != 1 || got[0].More != test.more || test.more > 0 && len(got[0].Changed) != pathLimit {
				t.Fatalf("records %+v; want one with %d more paths", got, test.more)
			}
			if diff := cmp.Diff(test.want, got[0].Changed); test.more == 0 && diff != "" {
				t.Errorf("paths, -want +got:\n%s", diff)
			}
		})
	}
}

// pathLimit is that of the package.
const pathLimit = 100

// An object that has no version of the request cannot be compared, which the record says.
func TestNotComparable(t *testing.T) {
	plugin := new(observe.Recorder).Decorate(mutates{create(), label}, "Labels")
	ctx, read := request(t, auditinternal.LevelMetadata)
	a := admission.NewAttributesRecord(&corev1.Pod{}, nil, corev1.SchemeGroupVersion.WithKind("Pod").GroupKind().WithVersion("v9"), "ns", "x",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	if err := admit(ctx, plugin, a); err != nil {
		t.Fatal(err)
	}
	if got := read(); len(got) != 1 || got[0].NotComparable == "" || got[0].Changed != nil {
		t.Errorf("records %+v; want one that says why there are no paths", got)
	}
}
