package rules

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// sequenceStep is one request of several that are sent to the same plugin.
type sequenceStep struct {
	request framework.Request
	// object is a copy of the result of Admit.
	object runtime.Object
	// refused is the phase that refused, with code and reason. Empty means none.
	refused string
	writes  string
	// held is the result of Admit itself.
	held runtime.Object
	// mutated is true if Admit changed the object.
	mutated bool
	phases  int
	// panicked is true for the last step if the plugin panicked.
	panicked bool
}

// differs returns how the result of a step differs from the expected one. Empty means not
// at all.
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

// overwriteAfterCall overwrites what a plugin was given, after the call. Before is the memory
// that its arguments referred to before the call.
type overwriteAfterCall func(given check.Attributes, before *check.Memory) *check.Overwritten

// sequence sends all requests to one plugin, twice. After each call it overwrites what the
// plugin was given; a nil function overwrites nothing.
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
				caches.Mutations() // restores caches, which cached-objects-are-not-shared (C2) is about
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
		s.refused = fmt.Sprintf("%s: %d %s", check.MethodOf(phase), result.Status.Code, result.Status.Reason)
	}
	s.writes += strings.TrimSpace(result.Calls.Writes().String())
	if phase == framework.Mutating {
		s.object, s.held = check.Copy(result.Object), result.Object
		s.mutated = result.Err == nil && !check.Equal(result.Before, result.Object)
	}
}

// compareWithOverwritten compares a plugin whose arguments are overwritten after each call with a
// plugin whose arguments are not. Blame is the text that says what a difference shows. A difference
// that does not occur again is ignored: one of the plugins may not have been ready, for example.
func compareWithOverwritten(t *check.T, after overwriteAfterCall, blame string) (normal []sequenceStep) {
	normal, overwritten := sequence(t, nil), sequence(t, after)
	if differsAt(normal, overwritten, 0) >= 0 {
		normal, overwritten = sequence(t, nil), sequence(t, after)
	}
	for i := differsAt(normal, overwritten, 0); i >= 0; i = differsAt(normal, overwritten, i+1) {
		// list-order-does-not-matter (T2) is about plugins whose results vary.
		if t.Ever(func() bool {
			again := sequence(t, nil)
			return i < len(again) && again[i].differs(normal[i]) != ""
		}) {
			t.Logf("ignored %s: the results of the plugin vary", normal[i].request)
			continue
		}
		t.Errorf("%s, after %s: %s (- without overwriting, + with it):\n%s", normal[i].request, before(normal, i), blame, overwritten[i].differs(normal[i]))
		break
	}
	return normal
}

// differsAt returns the first step, from one on, in which two sequences differ, or -1. Steps
// that panicked do not count.
func differsAt(normal, overwritten []sequenceStep, from int) int {
	for i := from; i < min(len(normal), len(overwritten)); i++ {
		if !normal[i].panicked && !overwritten[i].panicked && overwritten[i].differs(normal[i]) != "" {
			return i
		}
	}
	return -1
}

// before returns the requests of a sequence that come before one of its steps.
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
	normal := compareWithOverwritten(t,
		func(given check.Attributes, before *check.Memory) *check.Overwritten {
			return check.Overwrite(before.Contains, given.Object)
		},
		"overwriting what Admit had put into the objects of those requests changed what the plugin does. want: Admit puts copies there")
	for _, each := range normal {
		if each.mutated {
			t.Reached()
		}
		if each.held != nil && !check.Equal(each.object, each.held) {
			t.Errorf("%s: after Admit had returned, its object was changed by later requests. want: objects of different requests share no memory (- from Admit, + later):\n%s",
				each.request, check.Diff(each.object, each.held))
		}
	}
}

func checkNotRetained(t *check.T) {
	normal := compareWithOverwritten(t,
		func(given check.Attributes, before *check.Memory) *check.Overwritten {
			others := func(value reflect.Value) bool { return !before.Contains(value) }
			return check.Overwrite(others, given.Object, given.OldObject, given.Options, given.User)
		},
		"overwriting the arguments of those requests changed what the plugin does. want: it keeps copies of what it needs")
	for _, each := range normal {
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

// fullUser returns a copy of a user with groups and extra.
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
