package contract

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

const (
	foreignEdits = 16 // of one object, at most
	roundsToRest = 2
)

// checkConverges has somebody else edit the object after Admit: undo what it did, one
// place at a time, and add to maps and lists. An object for which Admit does not come to
// rest by itself is A1's. A refusal of the edited object is the plugin's right.
func checkConverges(t *Trial) {
	t.eachMutated(func(turn turn, first harness.Result) {
		if _, rests, ok := turn.rounds(copied(first.Object)); !ok || !rests {
			return
		}
		for number := range foreignEdits {
			edited := copied(first.Object)
			edit := editor{at: number}
			edit.object(copied(first.Before), edited)
			if edit.name == "" {
				return
			}
			last, rests, ok := turn.rounds(edited)
			if !ok {
				continue
			}
			t.Reached()
			if !rests {
				t.Errorf("%s: after Admit somebody else has %s; Admit, reinvoked, changes the object in each of %d rounds: expected it to come to rest after %d (- after the one before the last, + after the last):\n%s",
					turn.request, edit.name, roundsToRest+1, roundsToRest, last)
			}
		}
	})
}

// rounds has a plugin admit the request and then, in one reinvocation after another, an
// object that took its place. It reports whether the last round changed nothing more,
// and what it did change. It is not ok where the plugin refuses or panics.
func (t turn) rounds(edited runtime.Object) (change string, rests, ok bool) {
	again, ok := t.another()
	if !ok {
		return "", false, false
	}
	record := again.given.record()
	result, thrown := again.call(again.h, record, framework.Mutating)
	if thrown != nil || result.Err != nil || reflect.TypeOf(result.Object) != reflect.TypeOf(edited) {
		return "", false, false
	}
	reflect.ValueOf(record.GetObject()).Elem().Set(reflect.ValueOf(edited).Elem())
	record.GetReinvocationContext().SetShouldReinvoke()
	record.GetReinvocationContext().SetIsReinvoke()
	for range roundsToRest + 1 {
		result, thrown := again.call(again.h, record, framework.Mutating)
		if thrown != nil || result.Err != nil {
			return "", false, false
		}
		if same(result.Before, result.Object) {
			return "", true, true
		}
		change = diff(result.Before, result.Object)
	}
	return change, false, true
}
