package harness

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/plugincall"
	objects "github.com/admissiontest/admissiontest/internal/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// recorder is the first decorator of the plugins of a chain. It makes the same records as the
// Recorder of package observe in a kube-apiserver. It does not encode them as audit annotations,
// because that would take longer than most plugins.
type recorder struct{ plugins []*recorded }

// recorded is a plugin of a chain.
type recorded struct {
	admission.Interface // the plugin in the API server's decorator for metrics

	recorder           *recorder
	name               string
	position           int
	mutates, validates bool
}

// records has the records of one request. The context of the request carries it.
type records struct {
	calls   []plugincall.Record
	current string // the plugin that was called last
	// unchanged is the object as it was after the last mutating call.
	unchanged before
}

// before is a copy of an object.
type before struct {
	object runtime.Object
	// encoded is the object in protobuf, if the type has that encoding. Nil otherwise.
	encoded []byte
}

// encode returns an object in protobuf, or nil.
func encode(object runtime.Object) []byte {
	typed, ok := object.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil
	}
	encoded, err := typed.Marshal()
	if err != nil {
		return nil
	}
	return encoded
}

// differs reports whether the object differs from the copy. Encoding a Pod takes a
// tenth of the time of reflect.DeepEqual.
func (b before) differs(object runtime.Object) bool {
	if b.encoded != nil {
		return !bytes.Equal(b.encoded, encode(object))
	}
	return !reflect.DeepEqual(b.object, object)
}

type recordsKey struct{}

// Decorate implements admission.Decorator. It also applies the API server's own decorator, which
// gives every plugin both phases.
func (r *recorder) Decorate(plugin admission.Interface, name string) admission.Interface {
	p := &recorded{Interface: admissionmetrics.WithControllerMetrics(plugin, name), recorder: r, name: name, position: len(r.plugins)}
	_, p.mutates = plugin.(admission.MutationInterface)
	_, p.validates = plugin.(admission.ValidationInterface)
	r.plugins = append(r.plugins, p)
	return p
}

// Admit calls the plugin.
func (p *recorded) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	log, ok := ctx.Value(recordsKey{}).(*records)
	inner := p.Interface.(admission.MutationInterface)
	if !ok || !p.mutates {
		return inner.Admit(ctx, a, o)
	}
	if object := a.GetObject(); log.unchanged.object == nil && !objects.IsNil(object) {
		log.unchanged = before{object.DeepCopyObject(), encode(object)}
	}
	return p.call(log, framework.Mutating, a, func(r *plugincall.Record) error {
		err := inner.Admit(ctx, a, o)
		r.Duration = time.Since(time.Unix(0, r.Started))
		if log.unchanged.object != nil && log.unchanged.differs(a.GetObject()) {
			compare(r, log.unchanged.object, a, o)
			log.unchanged = before{}
		}
		return err
	})
}

// Validate calls the plugin.
func (p *recorded) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	log, ok := ctx.Value(recordsKey{}).(*records)
	inner := p.Interface.(admission.ValidationInterface)
	if !ok || !p.validates {
		return inner.Validate(ctx, a, o)
	}
	return p.call(log, framework.Validating, a, func(r *plugincall.Record) error {
		err := inner.Validate(ctx, a, o)
		r.Duration = time.Since(time.Unix(0, r.Started))
		return err
	})
}

// call makes a call and records it. If the plugin panics, records.current is the name of the
// plugin.
func (p *recorded) call(log *records, phase framework.Phase, a admission.Attributes, do func(*plugincall.Record) error) error {
	r := plugincall.Record{
		Plugin: p.name, Position: p.position, Phase: string(phase),
		Operation: string(a.GetOperation()), Resource: a.GetResource().GroupResource().String(),
		Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	if phase == framework.Mutating && a.GetReinvocationContext().IsReinvoke() {
		r.Round = 1
	}
	if last := len(log.calls) - 1; last < 0 || log.calls[last].Phase != r.Phase || log.calls[last].Round != r.Round {
		r.Unhandled = p.recorder.unhandled(phase, a.GetOperation())
	}
	log.current = p.name
	r.Started = time.Now().UnixNano()
	err := do(&r)
	r.Refused = refusal(err)
	log.calls = append(log.calls, r)
	return err
}

// unhandled returns the plugins of a phase that do not handle an operation.
func (r *recorder) unhandled(phase framework.Phase, operation admission.Operation) []plugincall.Unhandled {
	var all []plugincall.Unhandled
	for _, p := range r.plugins {
		if (phase == framework.Mutating && p.mutates || phase == framework.Validating && p.validates) && !p.Handles(operation) {
			all = append(all, plugincall.Unhandled{Plugin: p.name, Position: p.position})
		}
	}
	return all
}

// refusal returns the record of an error of a plugin.
func refusal(err error) *plugincall.Refusal {
	if err == nil {
		return nil
	}
	refused := &plugincall.Refusal{Code: http.StatusInternalServerError, Message: err.Error()}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		refused.Code, refused.Reason = int(status.Status().Code), string(status.Status().Reason)
	}
	return refused
}

// compare records what a call changed. To get the same paths as in a kube-apiserver, it makes the
// same change in a plugin that the Recorder of package observe records.
func compare(r *plugincall.Record, was runtime.Object, a admission.Attributes, o admission.ObjectInterfaces) {
	ctx := audit.WithAuditContext(context.Background())
	audited := audit.AuditContextFrom(ctx)
	_ = audited.Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata}, nil) // the context is new, so this cannot fail
	again := admission.NewAttributesRecord(was, nil, a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(), a.GetSubresource(), a.GetOperation(), nil, false, nil)
	replay := new(observe.Recorder).Decorate(change{admission.NewHandler(a.GetOperation()), a.GetObject()}, r.Plugin)
	if err := replay.(admission.MutationInterface).Admit(ctx, again, o); err != nil {
		r.NotComparable = err.Error()
		return
	}
	seen, err := plugincall.Take(audited.GetEventAnnotations())
	if err != nil || len(seen) != 1 {
		r.NotComparable = "the change was not recorded"
		return
	}
	r.Changed, r.More, r.NotComparable = seen[0].Changed, seen[0].More, seen[0].NotComparable
}

// change is a plugin that changes an object to another one.
type change struct {
	*admission.Handler
	to runtime.Object
}

func (c change) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	from, to := reflect.ValueOf(a.GetObject()), reflect.ValueOf(c.to)
	if objects.IsNil(c.to) || from.Type() != to.Type() || from.Kind() != reflect.Pointer {
		return errors.New("the object has another type after the call")
	}
	from.Elem().Set(to.Elem())
	return nil
}
