package rules

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

const (
	foreignEdits = 16 // of one object, at most
	roundsToRest = 2
)

// checkConverges has somebody else edit the object after Admit: undo what it did, one
// place at a time, and add to maps and lists. An object for which Admit does not come to
// rest by itself is A1's. A refusal of the edited object is the plugin's right.
func checkConverges(t *check.T) {
	t.EachMutation(func(invocation check.Invocation, first harness.Result) {
		shared, ok := invocation.WithNewPlugin()
		if !ok || !reinvokeUntilStable(shared, check.Copy(first.Object)).converged() {
			return
		}
		for number := range foreignEdits {
			edited := check.Copy(first.Object)
			edit := check.ForeignEdit{Index: number}
			edit.Apply(check.Copy(first.Before), edited)
			if edit.Name == "" {
				return
			}
			after := reinvokeUntilStable(shared, check.Copy(edited))
			if after.admitted {
				t.Reached()
			}
			if after.converged() || !after.admitted {
				continue
			}
			// What went before may be why: one more plugin has had nothing to do yet.
			fresh, ok := invocation.WithNewPlugin()
			if !ok {
				return
			}
			if after = reinvokeUntilStable(fresh, edited); after.admitted && !after.converged() {
				t.Errorf("%s: after Admit somebody else has %s; Admit, reinvoked, changes the object in each of %d rounds: expected it to come to rest after %d (- before the last round, + after it):\n%s",
					invocation.Request, edit.Name, roundsToRest+1, roundsToRest, after.change)
			}
		}
	})
}

// rest tells whether Admit comes to rest.
type reinvoked struct {
	// seen is false where the plugin refuses or panics.
	admitted bool
	// change is what the last round changed; empty where it changed nothing.
	change string
}

func (r reinvoked) converged() bool { return r.admitted && r.change == "" }

// rests has the plugin admit the request and then, in one reinvocation after another, an
// object that took its place.
func reinvokeUntilStable(t check.Invocation, edited runtime.Object) reinvoked {
	given, ok := t.AttributesFor(t.Harness, t.Request, framework.Mutating)
	if !ok {
		return reinvoked{}
	}
	record := given.Record()
	result, thrown := t.Call(t.Harness, record, framework.Mutating)
	if thrown != nil || result.Err != nil || reflect.TypeOf(result.Object) != reflect.TypeOf(edited) {
		return reinvoked{}
	}
	reflect.ValueOf(record.GetObject()).Elem().Set(reflect.ValueOf(edited).Elem())
	record.GetReinvocationContext().SetShouldReinvoke()
	record.GetReinvocationContext().SetIsReinvoke()
	for range roundsToRest + 1 {
		result, thrown = t.Call(t.Harness, record, framework.Mutating)
		if thrown != nil || result.Err != nil {
			return reinvoked{}
		}
		if check.Equal(result.Before, result.Object) {
			return reinvoked{admitted: true}
		}
	}
	return reinvoked{true, check.Diff(result.Before, result.Object)}
}
