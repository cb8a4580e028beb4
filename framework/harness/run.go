package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// serverTimeout is the time limit of a request in an API server
// (requestTimeoutUpperBound of k8s.io/apiserver/pkg/endpoints/handlers).
const serverTimeout = 34 * time.Second

// Do carries out a Request as an API server does: both phases, each with its own attributes, and a
// reinvocation if the plugin asks for one. As in an API server, a delete has the same attributes in
// both phases. The context of the plugin ends with the test, or after 34 seconds, the time limit of
// an API server. A Request that no API server sends, or a panic of the plugin, ends the test.
func (h *Harness) Do(request framework.Request) Result {
	h.t.Helper()
	return h.must(h.Run, request)
}

// Admit runs only the mutating phase, without reinvocation.
func (h *Harness) Admit(request framework.Request) Result {
	h.t.Helper()
	return h.must(func(ctx context.Context, request framework.Request) (Result, error) {
		return h.phase(ctx, request, framework.Mutating)
	}, request)
}

// Validate runs only the validating phase. Object of the Result is the copy that the plugin got; an
// API server discards that copy.
func (h *Harness) Validate(request framework.Request) Result {
	h.t.Helper()
	return h.must(func(ctx context.Context, request framework.Request) (Result, error) {
		return h.phase(ctx, request, framework.Validating)
	}, request)
}

func (h *Harness) must(run func(context.Context, framework.Request) (Result, error), request framework.Request) Result {
	h.t.Helper()
	ctx := context.Background()
	if with, ok := h.t.(framework.ContextT); ok {
		ctx = with.Context()
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	result, err := run(ctx, request)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	return result
}

// Run is Do with a context, and returns errors instead of ending the test. It returns an error if
// no API server sends the Request or the type of its object is unknown, and a *[PanicError] if the
// plugin panicked. A refusal is not an error but a Result.
func (h *Harness) Run(ctx context.Context, request framework.Request) (Result, error) {
	p, err := h.prepare(request)
	if err != nil {
		return Result{}, carryOut(request, err)
	}
	before := copyOf(p.object)
	o := h.observe(ctx)
	record := p.record()
	ctx = o.context(verbOf(p.operation, request.Verb), record)
	reinvoked, err := h.admit(ctx, record, p.object)
	if err == nil {
		err = h.validate(ctx, p.forValidation(record))
	}
	result, err := o.result(record, err)
	if err != nil {
		return result, carryOut(request, err)
	}
	result.Before, result.Reinvoked, result.verb = before, reinvoked, request.Verb
	result.notCalled = h.notCalled(p.operation, "")
	return result, nil
}

func (h *Harness) phase(ctx context.Context, request framework.Request, phase framework.Phase) (Result, error) {
	attributes, err := h.Attributes(request, phase)
	if err == nil {
		var result Result
		if result, err = h.call(ctx, attributes, phase, h.plugin); err == nil {
			result.verb = request.Verb
			result.notCalled = h.notCalled(attributes.GetOperation(), phase)
			return result, nil
		}
	}
	return Result{}, carryOut(request, err)
}

// Call calls one phase of the plugin with these attributes, without copies, whether or not the
// plugin handles the operation. If the plugin does not have the phase, the Result is that of an
// admitted request. If the plugin panics, the error is a *[PanicError].
func (h *Harness) Call(ctx context.Context, attributes admission.Attributes, phase framework.Phase) (Result, error) {
	return h.call(ctx, attributes, phase, direct{h.plugin})
}

// call calls one phase of a handler.
func (h *Harness) call(ctx context.Context, attributes admission.Attributes, phase framework.Phase, handler admission.Interface) (Result, error) {
	if attributes == nil {
		return Result{}, errors.New("call the plugin: the attributes are nil: use Harness.Attributes")
	}
	before := copyOf(attributes.GetObject())
	o := h.observe(ctx)
	ctx = o.context(verbOf(attributes.GetOperation(), ""), attributes)
	audited := admission.WithAudit(handler)
	var err error
	switch phase {
	case framework.Mutating:
		err = guard("Admit", func() error { return audited.(admission.MutationInterface).Admit(ctx, attributes, h.of(attributes)) })
	case framework.Validating:
		err = guard("Validate", func() error {
			return audited.(admission.ValidationInterface).Validate(ctx, attributes, h.of(attributes))
		})
	default:
		err = &usageError{fmt.Errorf("call the plugin: got phase %q, want %q or %q", phase, framework.Mutating, framework.Validating)}
	}
	result, err := o.result(attributes, err)
	result.Before = before
	return result, err
}

// notCalled returns why an API server does not call the plugin for an operation in a phase, or ""
// if it does. With an empty phase, notCalled only looks at the operation. A chain has both phases.
func (h *Harness) notCalled(operation admission.Operation, phase framework.Phase) string {
	_, mutates := h.plugin.(admission.MutationInterface)
	_, validates := h.plugin.(admission.ValidationInterface)
	switch {
	case !h.plugin.Handles(operation) && h.chained:
		return "no plugin of the chain handles " + string(operation)
	case !h.plugin.Handles(operation):
		return "the plugin does not handle " + string(operation)
	case phase == framework.Mutating && !mutates:
		return "the plugin has no Admit"
	case phase == framework.Validating && !validates:
		return "the plugin has no Validate"
	default:
		return ""
	}
}

// direct is a plugin whose Handles is always true.
type direct struct{ admission.Interface }

func (direct) Handles(admission.Operation) bool { return true }

func (d direct) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if mutator, ok := d.Interface.(admission.MutationInterface); ok {
		return mutator.Admit(ctx, a, o)
	}
	return nil
}

func (d direct) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if validator, ok := d.Interface.(admission.ValidationInterface); ok {
		return validator.Validate(ctx, a, o)
	}
	return nil
}

// admit runs the mutating phase as the API server's reinvoker does
// (k8s.io/apiserver/pkg/admission/reinvocation.go): the second call gets the same attributes
// record.
func (h *Harness) admit(ctx context.Context, record admission.Attributes, object runtime.Object) (reinvoked bool, err error) {
	if h.chained { // a chain is already wrapped in the API server's own reinvoker
		chain := admission.WithAudit(h.plugin).(admission.MutationInterface)
		err = guard("Admit", func() error { return chain.Admit(ctx, record, h.of(record)) })
		return record.GetReinvocationContext().IsReinvoke(), err
	}
	again := &reinvoker{Interface: h.plugin, foreign: h.foreign, object: object}
	audited := admission.WithAudit(again).(admission.MutationInterface)
	err = guard("Admit", func() error { return audited.Admit(ctx, record, h.of(record)) })
	return again.reinvoked, err
}

func (h *Harness) validate(ctx context.Context, record admission.Attributes) error {
	audited := admission.WithAudit(h.plugin).(admission.ValidationInterface)
	return guard("Validate", func() error { return audited.Validate(ctx, record, h.of(record)) })
}

// reinvoker calls Admit again if the plugin asked for a reinvocation, or if WithForeignMutation is
// used.
type reinvoker struct {
	admission.Interface
	foreign   func(runtime.Object)
	object    runtime.Object
	reinvoked bool
}

func (r *reinvoker) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutator, ok := r.Interface.(admission.MutationInterface)
	if !ok {
		return nil
	}
	if err := mutator.Admit(ctx, a, o); err != nil {
		return err
	}
	asked := a.GetReinvocationContext()
	if r.foreign != nil && !objects.IsNil(r.object) {
		r.foreign(r.object)
		asked.SetShouldReinvoke()
	}
	if !asked.ShouldReinvoke() {
		return nil
	}
	asked.SetIsReinvoke()
	r.reinvoked = true
	return mutator.Admit(ctx, a, o)
}

// forValidation returns the attributes record for Validate.
func (p *prepared) forValidation(first admission.Attributes) admission.Attributes {
	switch p.operation {
	case admission.Delete:
		return first // rest.AdmissionToValidateObjectDeleteFunc
	case admission.Connect:
		return p.record() // handlers.ConnectResource: the same options
	}
	second := *p
	second.object, second.old = copyOf(p.object), copyOf(p.old)
	second.generateName()
	return second.record()
}

func copyOf(object runtime.Object) runtime.Object {
	if objects.IsNil(object) {
		return nil
	}
	return object.DeepCopyObject()
}

// usageError is an error of the Harness or its caller, and not of the plugin.
type usageError struct{ error }

func carryOut(request framework.Request, err error) error {
	return fmt.Errorf("carry out %s: %w", request, err)
}
