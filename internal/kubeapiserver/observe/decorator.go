package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

// The phases, as package framework names them.
const (
	mutating   = "mutating"
	validating = "validating"
)

// Recorder records the calls of the plugins that it decorates. Use one Recorder for one chain of plugins.
type Recorder struct {
	calls atomic.Uint64

	mu      sync.Mutex
	plugins []*plugin
}

// plugin is a decorated plugin.
type plugin struct {
	admission.Interface
	name     string
	position int
	recorder *Recorder
}

// phase is a method of a plugin: Admit or Validate.
type phase = func(context.Context, admission.Attributes, admission.ObjectInterfaces) error

// The result of Decorate implements the same interfaces as the plugin, so it has one of these
// types.
type (
	mutator struct {
		*plugin
		inner admission.MutationInterface
	}
	validator struct {
		*plugin
		inner admission.ValidationInterface
	}
	both struct {
		*plugin
		mutator   mutator
		validator validator
	}
)

// Decorate returns a plugin that calls inner and records the calls. It must be the first decorator,
// because the type of inner shows which phases the plugin has. Decorate the plugins in the order in
// which the API server calls them.
func (r *Recorder) Decorate(inner admission.Interface, name string) admission.Interface {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &plugin{Interface: inner, name: name, position: len(r.plugins), recorder: r}
	r.plugins = append(r.plugins, p)
	m, mutates := inner.(admission.MutationInterface)
	v, validates := inner.(admission.ValidationInterface)
	switch {
	case mutates && validates:
		return both{plugin: p, mutator: mutator{p, m}, validator: validator{p, v}}
	case mutates:
		return mutator{p, m}
	case validates:
		return validator{p, v}
	default:
		return p
	}
}

// Admit calls the plugin.
func (b both) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return b.mutator.Admit(ctx, a, o)
}

// Validate calls the plugin.
func (b both) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return b.validator.Validate(ctx, a, o)
}

// Admit calls the plugin.
func (m mutator) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return m.observed(ctx, call{mutating, a, o}, m.inner.Admit)
}

// Validate calls the plugin.
func (v validator) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return v.observed(ctx, call{validating, a, o}, v.inner.Validate)
}

// call is what a plugin is called with.
type call struct {
	phase      string
	attributes admission.Attributes
	objects    admission.ObjectInterfaces
}

// observed calls a plugin and writes the record of the call. If the plugin panics, observed records
// the panic and panics again. It records nothing for a request that the audit policy does not log.
func (p *plugin) observed(ctx context.Context, c call, do phase) (err error) {
	if !audit.AuditContextFrom(ctx).Enabled() {
		return do(ctx, c.attributes, c.objects)
	}
	number := p.recorder.calls.Add(1)
	r := p.describe(c)
	var before runtime.Object
	if object := c.attributes.GetObject(); c.phase == mutating && !isNil(object) {
		before = object.DeepCopyObject()
	}
	started := time.Now()
	r.Started = started.UnixNano()
	defer func() {
		r.Duration = time.Since(started)
		cause := recover()
		if cause != nil {
			r.Panicked = fmt.Sprintf("%v, at %s", cause, PanicPosition())
		}
		if before != nil {
			p.compare(&r, before, c)
		}
		r.Refused = refusal(err)
		if text, marshalErr := json.Marshal(r); marshalErr == nil {
			audit.AddAuditAnnotation(ctx, kubeapiserver.Key(number), string(text))
		}
		if cause != nil {
			panic(cause) //nolint:forbidigo // it is the panic of the plugin, with its stack
		}
	}()
	return do(ctx, c.attributes, c.objects)
}

// describe returns the record of a call before it is made.
func (p *plugin) describe(c call) kubeapiserver.Record {
	a := c.attributes
	r := kubeapiserver.Record{
		Plugin: p.name, Position: p.position, Phase: c.phase,
		Operation: string(a.GetOperation()), Resource: a.GetResource().GroupResource().String(),
		Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	if c.phase == mutating && a.GetReinvocationContext() != nil && a.GetReinvocationContext().IsReinvoke() {
		r.Round = 1
	}
	r.Unhandled = p.unhandled(c)
	return r
}

// unhandled returns the plugins that a pass does not call, because they do not handle the
// operation. Nil unless p is the first plugin that the pass calls.
func (p *plugin) unhandled(c call) []kubeapiserver.Unhandled {
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	var others []kubeapiserver.Unhandled
	for _, other := range p.recorder.plugins {
		switch {
		case !other.has(c.phase):
		case !other.Handles(c.attributes.GetOperation()):
			others = append(others, kubeapiserver.Unhandled{Plugin: other.name, Position: other.position})
		case other.position < p.position:
			return nil
		}
	}
	return others
}

// has reports whether the plugin takes part in a phase.
func (p *plugin) has(phase string) bool {
	if phase == mutating {
		_, ok := p.Interface.(admission.MutationInterface)
		return ok
	}
	_, ok := p.Interface.(admission.ValidationInterface)
	return ok
}

// compare notes what the call changed.
func (p *plugin) compare(r *kubeapiserver.Record, before runtime.Object, c call) {
	paths, err := changes(before, c.attributes.GetObject(), c.attributes, c.objects)
	if err != nil {
		r.NotComparable = err.Error()
		return
	}
	if len(paths) > pathLimit {
		paths, r.More = paths[:pathLimit], len(paths)-pathLimit
	}
	r.Changed = paths
}

// refusal returns the record of an error of a plugin, or nil for nil. An API server responds with
// code 500 to an error without a Status. It does not unwrap the error
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/status.go).
func refusal(err error) *kubeapiserver.Refusal {
	if err == nil {
		return nil
	}
	refused := &kubeapiserver.Refusal{Code: http.StatusInternalServerError, Message: err.Error()}
	if status, ok := err.(apierrors.APIStatus); ok {
		refused.Code, refused.Reason = int(status.Status().Code), string(status.Status().Reason)
	}
	return refused
}

// isNil reports whether an object is nil or a nil pointer.
func isNil(object runtime.Object) bool {
	if object == nil {
		return true
	}
	value := reflect.ValueOf(object)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
