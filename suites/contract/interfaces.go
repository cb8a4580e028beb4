package contract

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// usedInterfaces are ObjectInterfaces that tell whether a plugin uses them.
type usedInterfaces struct {
	admission.ObjectInterfaces
	used bool
}

func (u *usedInterfaces) GetObjectCreater() runtime.ObjectCreater {
	u.used = true
	return u.ObjectInterfaces.GetObjectCreater()
}

func (u *usedInterfaces) GetObjectTyper() runtime.ObjectTyper {
	u.used = true
	return u.ObjectInterfaces.GetObjectTyper()
}

func (u *usedInterfaces) GetObjectDefaulter() runtime.ObjectDefaulter {
	u.used = true
	return u.ObjectInterfaces.GetObjectDefaulter()
}

func (u *usedInterfaces) GetObjectConvertor() runtime.ObjectConvertor {
	u.used = true
	return u.ObjectInterfaces.GetObjectConvertor()
}

func (u *usedInterfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	u.used = true
	return u.ObjectInterfaces.GetEquivalentResourceMapper()
}

func checkObjectInterfaces(t *Trial) {
	with, without := t.Plugin(), t.Plugin()
	used, compared := false, false
	for _, request := range t.Seeds() {
		for _, phase := range bothPhases() {
			given := &usedInterfaces{}
			expected, ok := t.direct(with, request, phase, given)
			if given.used {
				used = true
				continue
			}
			if !ok || expected.panicked != nil {
				continue
			}
			got, ok := t.direct(without, request, phase, nil)
			if !ok || (expected.err == nil && same(expected.before, expected.object)) {
				continue // nor does it do anything with them
			}
			compared = true
			difference := got.differs(expected)
			if difference == "" {
				continue
			}
			// A plugin that never does the same twice is another property's.
			if again, ok := t.direct(t.Plugin(), request, phase, given); ok && again.differs(expected) == "" {
				t.Errorf("%s, in the %s phase, without ObjectInterfaces: %s", request, phase, difference)
			}
		}
	}
	switch {
	case compared:
		t.Reached()
	case used:
		t.Unsupported("it uses the ObjectInterfaces, which every API server gives")
	}
}

// direct is what came of a plugin that was called with nothing around it.
type direct struct {
	before, object runtime.Object
	err            error
	panicked       any
}

// direct calls one phase, with the ObjectInterfaces of the object unless given is nil.
// It returns false where the API server would not call it.
func (t *Trial) direct(h *harness.Harness, request framework.Request, phase framework.Phase, given *usedInterfaces) (d direct, ok bool) {
	f, ok := t.attributes(h, request, phase)
	if !ok || !called(h.Plugin(), phase, f.operation) {
		return direct{}, false
	}
	d.object = f.object
	if f.object != nil {
		d.before = f.object.DeepCopyObject()
	}
	var interfaces admission.ObjectInterfaces
	if given != nil {
		object := f.object
		if object == nil {
			object = f.old
		}
		given.ObjectInterfaces = h.ObjectInterfaces(object)
		interfaces = given
	}
	defer func() { d.panicked = recover() }()
	d.err = callPhase(t.Context(), h.Plugin(), phase, f.record(), interfaces)
	return d, true
}

func callPhase(ctx context.Context, plugin admission.Interface, phase framework.Phase, a admission.Attributes, o admission.ObjectInterfaces) error {
	if phase == framework.Mutating {
		return plugin.(admission.MutationInterface).Admit(ctx, a, o)
	}
	return plugin.(admission.ValidationInterface).Validate(ctx, a, o)
}

// differs tells in what this is not what was expected; empty if in nothing.
func (d direct) differs(expected direct) string {
	switch {
	case d.panicked != nil:
		return fmt.Sprintf("it panicked: %v", d.panicked)
	case (d.err == nil) != (expected.err == nil):
		return fmt.Sprintf("it %s; with them it %s", verdictOf(d.err), verdictOf(expected.err))
	case d.err != nil && apierrors.ReasonForError(d.err) != apierrors.ReasonForError(expected.err): // messages are E3's
		return fmt.Sprintf("it %s; with them it %s", verdictOf(d.err), verdictOf(expected.err))
	case !same(d.object, expected.object):
		return "it left another object (- with them, + without):\n" + diff(expected.object, d.object)
	default:
		return ""
	}
}

func verdictOf(err error) string {
	if err == nil {
		return "admits it"
	}
	return "refuses it: " + err.Error()
}
