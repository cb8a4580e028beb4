package contract

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
)

// turn is a request about to be put to a plugin of its own.
type turn struct {
	*Trial
	h       *harness.Harness
	request framework.Request
	// given is what the plugin is to be called with: copies, in the turn's hands.
	given fields
}

// each calls look for each of these requests that the API server would call the plugin
// for in a phase, each with a plugin of its own. A plugin without that phase is not
// concerned.
func (t *Trial) each(requests []framework.Request, phase framework.Phase, look func(turn)) {
	t.needPhase(phase)
	for _, request := range requests {
		h := t.Plugin()
		given, ok := t.attributes(h, request, phase)
		if ok && called(h.Plugin(), phase, given.operation) {
			look(turn{t, h, request, given})
		}
	}
}

// eachMutated calls look for each request of which Admit has changed the object, with
// what came of it.
func (t *Trial) eachMutated(look func(turn, harness.Result)) {
	t.each(t.Seeds(), framework.Mutating, func(turn turn) {
		if result, ok := turn.admitted(); ok && !same(result.Before, result.Object) {
			look(turn, result)
		}
	})
}

// admitted has the plugin admit what the turn has, in place. It returns false where
// it refuses or panics.
func (t turn) admitted() (harness.Result, bool) {
	result, thrown := t.call(t.h, t.given.record(), framework.Mutating)
	return result, thrown == nil && result.Err == nil
}

// another returns the turn with the same request and another plugin.
func (t turn) another() (turn, bool) {
	h := t.Plugin()
	given, ok := t.attributes(h, t.request, framework.Mutating)
	return turn{t.Trial, h, t.request, given}, ok
}

// needPhase ends the trial of a plugin that has no such phase.
func (t *Trial) needPhase(phase framework.Phase) {
	if !has(t.Plugin().Plugin(), phase) {
		t.Unsupported("the plugin has no %s", inPhase(phase))
	}
}

// inPhase is the method that is called in a phase.
func inPhase(phase framework.Phase) string {
	if phase == framework.Mutating {
		return "Admit"
	}
	return "Validate"
}

// forValidation returns what the API server calls Validate with for a request, after
// Admit: copies, on a record of their own. It returns false where it would not.
func (t *Trial) forValidation(h *harness.Harness, request framework.Request) (given fields, mutation harness.Result, ok bool) {
	second, ok := t.attributes(h, request, framework.Validating)
	if !ok || !h.Plugin().Handles(second.operation) {
		return fields{}, harness.Result{}, false
	}
	if !has(h.Plugin(), framework.Mutating) {
		return second, harness.Result{}, true
	}
	first, ok := t.attributes(h, request, framework.Mutating)
	if !ok {
		return fields{}, harness.Result{}, false
	}
	mutation, ok = turn{t, h, request, first}.admitted()
	if !ok {
		return fields{}, harness.Result{}, false
	}
	generated := second.object
	second.object, second.old = copied(first.object), copied(first.old)
	named(second.object, generated)
	return second, mutation, true
}

// named gives an object the name that the API server has generated for another one.
func named(object, like runtime.Object) {
	if objects.IsNil(object) || objects.IsNil(like) {
		return
	}
	to, err := meta.Accessor(object)
	if err != nil {
		return
	}
	if from, err := meta.Accessor(like); err == nil && to.GetName() == "" {
		to.SetName(from.GetName())
	}
}

// kept has copies of the objects of a request, to tell what becomes of them.
type kept struct{ given, copies fields }

func keep(given fields) kept {
	return kept{given, fields{object: copied(given.object), old: copied(given.old), options: copied(given.options)}}
}

// changes says what has become of the objects since; empty means nothing.
func (k kept) changes() string {
	var changed []string
	for _, each := range []struct {
		name    string
		was, is runtime.Object
	}{
		{"object", k.copies.object, k.given.object},
		{"old object", k.copies.old, k.given.old},
		{"operation options", k.copies.options, k.given.options},
	} {
		if !same(each.was, each.is) {
			changed = append(changed, fmt.Sprintf("it changed the %s (- was, + is):\n%s", each.name, diff(each.was, each.is)))
		}
	}
	return strings.Join(changed, "\n")
}

// copied returns a deep copy; nil of nothing.
func copied(object runtime.Object) runtime.Object {
	if objects.IsNil(object) {
		return nil
	}
	return object.DeepCopyObject()
}
