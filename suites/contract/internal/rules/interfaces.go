package rules

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// usedInterfaces are ObjectInterfaces that record whether a plugin uses them.
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

func checkObjectInterfaces(t *check.T) {
	with, without := t.Plugin(), t.Plugin()
	used, compared := false, false
	for _, request := range t.Requests() {
		for _, phase := range check.Phases() {
			given := &usedInterfaces{}
			expected, ok := callDirectly(t, with, request, phase, given)
			if given.used {
				used = true
				continue
			}
			if !ok || expected.panicked != nil {
				continue
			}
			got, ok := callDirectly(t, without, request, phase, nil)
			if !ok || (expected.err == nil && check.Equal(expected.before, expected.object)) {
				continue // with the ObjectInterfaces of the test, the plugin does nothing either
			}
			compared = true
			difference := got.differs(expected)
			if difference == "" {
				continue
			}
			// Another rule is about plugins whose results vary.
			if !t.Ever(func() bool {
				again, ok := callDirectly(t, t.Plugin(), request, phase, given)
				return !ok || again.differs(expected) != ""
			}) {
				t.Errorf("%s, in the %s phase, without ObjectInterfaces: %s", request, phase, difference)
			}
		}
	}
	switch {
	case compared:
		t.Reached()
	case used:
		t.Unsupported("the plugin uses the ObjectInterfaces, which every API server passes")
	}
}

// direct is the result of a call of the plugin without the Harness.
type direct struct {
	before, object runtime.Object
	err            error
	panicked       any
}

// callDirectly calls one phase, with the ObjectInterfaces of the object unless given is nil.
// It returns false where an API server would not call the plugin.
func callDirectly(t *check.T, h *harness.Harness, request framework.Request, phase framework.Phase, given *usedInterfaces) (d direct, ok bool) {
	f, ok := t.AttributesFor(h, request, phase)
	if !ok || !check.WouldCall(h.Plugin(), phase, f.Operation) {
		return direct{}, false
	}
	d.object = f.Object
	if f.Object != nil {
		d.before = f.Object.DeepCopyObject()
	}
	var interfaces admission.ObjectInterfaces
	if given != nil {
		object := f.Object
		if object == nil {
			object = f.OldObject
		}
		given.ObjectInterfaces = h.ObjectInterfaces(object)
		interfaces = given
	}
	defer func() { d.panicked = recover() }()
	d.err = callPhase(t.Context(), h.Plugin(), phase, f.Record(), interfaces)
	return d, true
}

func callPhase(ctx context.Context, plugin admission.Interface, phase framework.Phase, a admission.Attributes, o admission.ObjectInterfaces) error {
	if phase == framework.Mutating {
		return plugin.(admission.MutationInterface).Admit(ctx, a, o)
	}
	return plugin.(admission.ValidationInterface).Validate(ctx, a, o)
}

// differs returns how a result differs from the expected one. Empty means not at all.
func (d direct) differs(expected direct) string {
	switch {
	case d.panicked != nil:
		return fmt.Sprintf("it panicked: %v", d.panicked)
	case (d.err == nil) != (expected.err == nil):
		return fmt.Sprintf("it %s, and with them it %s", verdictOf(d.err), verdictOf(expected.err))
	case d.err != nil && apierrors.ReasonForError(d.err) != apierrors.ReasonForError(expected.err): // refusal-messages-are-stable (E3) compares messages
		return fmt.Sprintf("it %s, and with them it %s", verdictOf(d.err), verdictOf(expected.err))
	case !check.Equal(d.object, expected.object):
		return "its object differs (- with them, + without):\n" + check.Diff(expected.object, d.object)
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
