package rules

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// step is one request of several that are put to one plugin.
type sequenceStep struct {
	request framework.Request
	// object is what the plugin left, taken a copy of at once.
	object runtime.Object
	// refused is the error of either phase; empty without one.
	refused string
	writes  string
	// held is the object itself.
	held runtime.Object
	// mutated tells whether it was changed.
	mutated bool
	phases  int
	// panicked ends the sequence.
	panicked bool
}

// differs tells in what a step came out otherwise than expected; empty if in nothing.
func (s sequenceStep) differs(expected sequenceStep) string {
	switch {
	case s.refused != expected.refused:
		return "- " + verdictText(expected.refused) + "\n+ " + verdictText(s.refused)
	case !check.Equal(expected.object, s.object):
		return check.Diff(expected.object, s.object)
	case s.writes != expected.writes:
		return "- wrote: " + expected.writes + "\n+ wrote: " + s.writes
	default:
		return ""
	}
}

func verdictText(refused string) string {
	if refused == "" {
		return "admitted"
	}
	return "refused: " + refused
}

// ruin does something to what a plugin was given, when it has returned. Before is the
// memory that was reachable from it at the beginning.
type overwriteAfterCall func(given check.Attributes, before *check.Memory) *check.Overwritten

// sequence puts all requests to one plugin, one after the other and that twice. After
// each call what the plugin was given is ruined; a nil ruin leaves it.
func sequence(t *check.T, after overwriteAfterCall) (steps []sequenceStep) {
	h := t.Plugin()
	caches := h.World().Snapshot()
	requests := t.Requests()
	for _, request := range append(append([]framework.Request{}, requests...), requests...) {
		next := sequenceStep{request: request}
		for _, phase := range check.Phases() {
			given, ok := t.AttributesFor(h, request, phase)
			if !ok || !check.WouldCall(h.Plugin(), phase, given.Operation) {
				continue
			}
			if phase == framework.Validating && next.object != nil {
				name := given.Object
				given.Object = check.Copy(next.object)
				check.CopyName(given.Object, name)
			}
			before := check.MemoryOf(given.Object, given.OldObject, given.Options, given.User)
			result, thrown := t.Call(h, given.Record(), phase)
			if thrown != nil {
				next.panicked = true
				break
			}
			next.phases++
			next.note(result, phase)
			if after != nil {
				undo := after(given, before)
				t.Cleanup(undo.Restore)
				caches.Mutations() // puts back what was written over in caches: C2's
			}
			if result.Err != nil {
				break
			}
		}
		steps = append(steps, next)
		if next.panicked {
			return steps
		}
	}
	return steps
}

func (s *sequenceStep) note(result harness.Result, phase framework.Phase) {
	if result.Err != nil {
		s.refused = check.MethodOf(phase) + ": " + result.Err.Error()
	}
	s.writes += strings.TrimSpace(result.Calls.Writes().String())
	if phase == framework.Mutating {
		s.object, s.held = check.Copy(result.Object), result.Object
		s.mutated = result.Err == nil && !check.Equal(result.Before, result.Object)
	}
}

// checkRuined compares a plugin whose objects are ruined with one whose are not. Blame
// says what a difference shows.
func compareWithOverwritten(t *check.T, after overwriteAfterCall, blame string) (calm []sequenceStep) {
	calm = sequence(t, nil)
	ruined := sequence(t, after)
	for i := range min(len(calm), len(ruined)) {
		difference := ruined[i].differs(calm[i])
		if calm[i].panicked || ruined[i].panicked || difference == "" {
			continue
		}
		// One that does not do the same twice without anybody's doing is T2's.
		again := sequence(t, nil)
		if i < len(again) && again[i].differs(calm[i]) != "" {
			t.Logf("%s is not looked at: the plugin does not do the same twice", calm[i].request)
			continue
		}
		t.Errorf("%s, after %s: %s (- without that, + with it):\n%s", calm[i].request, before(calm, i), blame, difference)
		break
	}
	return calm
}

// before names the requests before one of a sequence.
func before(steps []sequenceStep, at int) string {
	if at == 0 {
		return "none"
	}
	names := make([]string, 0, at)
	for _, each := range steps[:at] {
		names = append(names, each.request.String())
	}
	return strings.Join(names, ", ")
}

func checkStateNotAliased(t *check.T) {
	t.RequirePhase(framework.Mutating)
	calm := compareWithOverwritten(t,
		func(given check.Attributes, before *check.Memory) *check.Overwritten {
			return check.Overwrite(before.Contains, given.Object)
		},
		"what Admit had put into the objects of those requests was written over when it had returned, and now the plugin does something else: expected it to put copies there")
	for _, each := range calm {
		if each.mutated {
			t.Reached()
		}
		if each.held != nil && !check.Equal(each.object, each.held) {
			t.Errorf("%s: Admit had returned, and its object was changed by later requests: expected objects of different requests to share nothing (- as Admit left it, + later):\n%s",
				each.request, check.Diff(each.object, each.held))
		}
	}
}

func checkNotRetained(t *check.T) {
	calm := compareWithOverwritten(t,
		func(given check.Attributes, before *check.Memory) *check.Overwritten {
			others := func(place reflect.Value) bool { return !before.Contains(place) }
			return check.Overwrite(others, given.Object, given.OldObject, given.Options, given.User)
		},
		"what the plugin had been given for those requests was written over when it had returned, and now it does something else: expected it to keep copies of what it needs")
	for _, each := range calm {
		if each.phases > 0 {
			t.Reached()
		}
	}
}

func checkUserUnchanged(t *check.T) {
	for _, request := range t.Requests() {
		h := t.Plugin()
		for _, phase := range check.Phases() {
			given, ok := t.AttributesFor(h, request, phase)
			if !ok || !check.WouldCall(h.Plugin(), phase, given.Operation) || given.User == nil {
				continue
			}
			who := fullUser(given.User)
			given.User = who
			was := fullUser(who)
			if _, thrown := t.Call(h, given.Record(), phase); thrown != nil {
				continue
			}
			t.Reached()
			if !reflect.DeepEqual(was, who) {
				t.Errorf("%s: %s changed the user\n- %+v\n+ %+v", request, check.MethodOf(phase), *was, *who)
			}
		}
	}
}

// fullUser returns a copy of a user that has groups and extra.
func fullUser(who user.Info) *user.DefaultInfo {
	full := &user.DefaultInfo{
		Name: who.GetName(), UID: who.GetUID(),
		Groups: append([]string{}, who.GetGroups()...),
		Extra:  map[string][]string{check.ForeignMark: {"b", "a"}},
	}
	for key, values := range who.GetExtra() {
		full.Extra[key] = append([]string{}, values...)
	}
	return full
}
