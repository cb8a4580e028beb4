package check

import (
	"errors"
	"runtime"

	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
)

// Invocation is a request for which a plugin is about to be called. Each Invocation has a
// new plugin.
type Invocation struct {
	*T
	Harness *harness.Harness
	Request framework.Request
	// Attributes are the attributes for the call, with copies of the objects.
	Attributes Attributes
}

// EachInvocation calls f for each request for which an API server would call the plugin in
// a phase. The check is unsupported if the plugin does not have the phase.
func (t *T) EachInvocation(requests []framework.Request, phase framework.Phase, f func(Invocation)) {
	t.RequirePhase(phase)
	for _, request := range requests {
		h := t.Plugin()
		given, ok := t.AttributesFor(h, request, phase)
		if ok && WouldCall(h.Plugin(), phase, given.Operation) {
			f(Invocation{t, h, request, given})
		}
	}
}

// EachMutation calls f for each request whose object Admit has changed.
func (t *T) EachMutation(f func(Invocation, harness.Result)) {
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation Invocation) {
		if result, ok := invocation.Admit(); ok && !Equal(result.Before, result.Object) {
			f(invocation, result)
		}
	})
}

// Admit calls Admit. It returns false if the plugin refuses or panics.
func (i Invocation) Admit() (harness.Result, bool) {
	result, thrown := i.Call(i.Harness, i.Attributes.Record(), framework.Mutating)
	return result, thrown == nil && result.Err == nil
}

// WithNewPlugin returns the same request for a new plugin.
func (i Invocation) WithNewPlugin() (Invocation, bool) {
	h := i.Plugin()
	given, ok := i.AttributesFor(h, i.Request, framework.Mutating)
	return Invocation{i.T, h, i.Request, given}, ok
}

// Call calls one phase of a plugin with these attributes and their objects, whether or not
// the plugin handles the operation. If the plugin panics there is no Result. Call ends the check if
// its budget is used up.
func (t *T) Call(h *harness.Harness, attributes admission.Attributes, phase framework.Phase) (harness.Result, *harness.PanicError) {
	if t.Over() {
		runtime.Goexit()
	}
	result, err := h.Call(t.Context(), attributes, phase)
	var thrown *harness.PanicError
	if errors.As(err, &thrown) {
		return harness.Result{}, thrown
	}
	if err != nil {
		t.Fatalf("call the plugin: %v", err)
	}
	return result, nil
}

// Do sends a request through both phases. It returns false if the plugin panics. It does not report
// the panic: the rules about panics do.
func (t *T) Do(h *harness.Harness, request framework.Request) (harness.Result, bool) {
	result, err := h.Run(t.Context(), request)
	if err != nil {
		t.LogOnce("ignored: " + err.Error())
		return harness.Result{}, false
	}
	return result, true
}

// ForValidation calls Admit, if there is one, and returns the attributes with which an API server
// then calls Validate, and the result of Admit. It returns false if an API server would not call
// Validate.
func (t *T) ForValidation(h *harness.Harness, request framework.Request) (given Attributes, mutation harness.Result, ok bool) {
	second, ok := t.AttributesFor(h, request, framework.Validating)
	if !ok || !h.Plugin().Handles(second.Operation) {
		return Attributes{}, harness.Result{}, false
	}
	if !HasPhase(h.Plugin(), framework.Mutating) {
		return second, harness.Result{}, true
	}
	first, ok := t.AttributesFor(h, request, framework.Mutating)
	if !ok {
		return Attributes{}, harness.Result{}, false
	}
	mutation, ok = Invocation{t, h, request, first}.Admit()
	if !ok {
		return Attributes{}, harness.Result{}, false
	}
	generated := second.Object
	second.Object, second.OldObject = Copy(first.Object), Copy(first.OldObject)
	CopyName(second.Object, generated)
	return second, mutation, true
}

// CopyName gives an object without a name the name of another object. An API server does so
// between the phases, with the name that it generates.
func CopyName(object, from apiruntime.Object) {
	if objects.IsNil(object) || objects.IsNil(from) {
		return
	}
	to, err := meta.Accessor(object)
	if err != nil {
		return
	}
	if source, err := meta.Accessor(from); err == nil && to.GetName() == "" {
		to.SetName(source.GetName())
	}
}
