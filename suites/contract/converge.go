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
		shared, ok := turn.another()
		if !ok || !shared.rests(copied(first.Object)).well() {
			return
		}
		for number := range foreignEdits {
			edited := copied(first.Object)
			edit := editor{at: number}
			edit.object(copied(first.Before), edited)
			if edit.name == "" {
				return
			}
			after := shared.rests(copied(edited))
			if after.seen {
				t.Reached()
			}
			if after.well() || !after.seen {
				continue
			}
			// What went before may be why: one more plugin has had nothing to do yet.
			fresh, ok := turn.another()
			if !ok {
				return
			}
			if after = fresh.rests(edited); after.seen && !after.well() {
				t.Errorf("%s: after Admit somebody else has %s; Admit, reinvoked, changes the object in each of %d rounds: expected it to come to rest after %d (- before the last round, + after it):\n%s",
					turn.request, edit.name, roundsToRest+1, roundsToRest, after.change)
			}
		}
	})
}

// rest tells whether Admit comes to rest.
type rest struct {
	// seen is false where the plugin refuses or panics.
	seen bool
	// change is what the last round changed; empty where it changed nothing.
	change string
}

func (r rest) well() bool { return r.seen && r.change == "" }

// rests has the plugin admit the request and then, in one reinvocation after another, an
// object that took its place.
func (t turn) rests(edited runtime.Object) rest {
	given, ok := t.attributes(t.h, t.request, framework.Mutating)
	if !ok {
		return rest{}
	}
	record := given.record()
	result, thrown := t.call(t.h, record, framework.Mutating)
	if thrown != nil || result.Err != nil || reflect.TypeOf(result.Object) != reflect.TypeOf(edited) {
		return rest{}
	}
	reflect.ValueOf(record.GetObject()).Elem().Set(reflect.ValueOf(edited).Elem())
	record.GetReinvocationContext().SetShouldReinvoke()
	record.GetReinvocationContext().SetIsReinvoke()
	for range roundsToRest + 1 {
		result, thrown = t.call(t.h, record, framework.Mutating)
		if thrown != nil || result.Err != nil {
			return rest{}
		}
		if same(result.Before, result.Object) {
			return rest{seen: true}
		}
	}
	return rest{true, diff(result.Before, result.Object)}
}
