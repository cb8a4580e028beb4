package contract

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// fuzzDepth and fuzzElements bound the objects that fuzzing makes: some types contain
// themselves.
const (
	fuzzDepth    = 12
	fuzzElements = 3
)

// Fuzz fuzzes the plugin with objects like those of the Subject's requests. Data
// chooses a request, and what of its object is replaced by something random; name and
// namespace stay. The requests themselves are the corpus, so that go test alone tries
// them and a few objects made of each; go test -fuzz tries more, and shrinks what fails:
//
//	func FuzzPlugin(f *testing.F) {
//		contract.Fuzz(f, subject(), func(p *corev1.PodSpec, c randfill.Continue) {
//			c.FillNoCustom(p)
//			p.Overhead = nil // another plugin's
//		})
//	}
//
// Fill are functions as [randfill.Filler.Funcs] takes them, for types that need more
// than random fields; those of apimachinery's own types are there already. An API
// group's own are in its package fuzzer.
//
// Only what holds for every object is checked, whether it is refused or not: that the
// plugin does not panic (P1), Validate changes nothing (V1), Admit neither the old
// object (O1) nor the caches (C1), and has nothing to change the second time (A1), and
// that a refusal is a Status (E1).
func Fuzz(f *testing.F, subject Subject, fill ...any) {
	f.Helper()
	if subject.Name == "" {
		subject.Name = f.Name()
	}
	var report Report
	broken := examine(subject, &report)
	for _, wrong := range report.Misuse {
		f.Error(wrong)
	}
	if broken != nil || len(subject.seeds()) == 0 {
		return
	}
	if err := fuzzFuncs(fill); err != nil {
		f.Fatal(err)
	}
	for i := range subject.seeds() {
		f.Add([]byte{byte(i)})
		for _, more := range []string{"\x00", "\x01seed", "\xffanother seed"} {
			f.Add(append([]byte{byte(i)}, more...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if outcome := fuzz(subject, data, fill); outcome.Verdict == framework.Fail {
			t.Error(outcome.Reason)
		}
	})
}

// fuzzFuncs reports what randfill would panic at.
func fuzzFuncs(fill []any) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("contract.Fuzz: a function to fill objects: %v: want func(object *T, c randfill.Continue)", thrown)
		}
	}()
	randfill.New().Funcs(fill...)
	return nil
}

// fuzz tries one object: data[0] is the request, data[1] says which fields of its
// object stay, and the rest is what becomes of the others.
func fuzz(subject Subject, data []byte, fill []any) Outcome {
	trial := &Trial{Subject: subject, ctx: background()}
	return trial.run(Property{ID: "fuzz", Check: func(t *Trial) {
		if len(data) == 0 {
			return
		}
		seeds := t.Seeds()
		request := seeds[int(data[0])%len(seeds)]
		h := t.Plugin()
		if len(data) > 1 {
			made, err := made(request, data[1:], fill)
			if err != nil {
				t.Fatalf("%v", err)
			}
			request = made
		}
		t.Reached()
		t.fuzzed(h, request)
	}}, DefaultBudget)
}

// made returns a request with an object made of data. One that has no object gets an
// old object made so.
func made(request framework.Request, data []byte, fill []any) (changed framework.Request, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("fill the object of %s: %v: give a function for the type to contract.Fuzz", request, thrown)
		}
	}()
	target := &request.Object
	if *target == nil {
		target = &request.InProcess.OldObject
	}
	seed := *target
	if _, loose := seed.(runtime.Unstructured); loose || seed == nil {
		return request, nil // no type to fill
	}
	object := seed.DeepCopyObject()
	filler := randfill.NewFromGoFuzz(data[1:]).NilChance(0.3).NumElements(1, fuzzElements).MaxDepth(fuzzDepth)
	filler.Funcs(metafuzzer.Funcs(scheme.Codecs)...).Funcs(fill...)
	fresh := reflect.New(reflect.TypeOf(object).Elem())
	filler.Fill(fresh.Interface())
	mix(reflect.ValueOf(object).Elem(), fresh.Elem(), data[0])
	object.GetObjectKind().SetGroupVersionKind(seed.GetObjectKind().GroupVersionKind())
	if is, failed := meta.Accessor(object); failed == nil {
		was, _ := meta.Accessor(seed)
		is.SetName(was.GetName())
		is.SetNamespace(was.GetNamespace())
	}
	*target = object
	return request, nil
}

// mix replaces the fields of an object by fresh ones, but for those whose bit is set.
func mix(object, fresh reflect.Value, stay byte) {
	for i := range object.NumField() {
		if stay>>(i%8)&1 == 0 && object.Field(i).CanSet() {
			object.Field(i).Set(fresh.Field(i))
		}
	}
}

// fuzzed puts a request through both phases.
func (t *Trial) fuzzed(h *harness.Harness, request framework.Request) {
	f, ok := t.attributes(h, request, framework.Mutating)
	if !ok {
		return // not of a shape that is sent: the name of an old object, say
	}
	if called(h.Plugin(), framework.Mutating, f.operation) && !t.fuzzAdmit(h, f) {
		return
	}
	if !called(h.Plugin(), framework.Validating, f.operation) {
		return
	}
	before := f.copied()
	result, thrown := t.call(h, f.record(), framework.Validating)
	t.fuzzAnswer(f, result, thrown)
	if thrown == nil {
		for _, changed := range before.changed(f) {
			t.Errorf("V1: %s: Validate changed %s", f, changed)
		}
	}
}

// fuzzAdmit has the plugin admit, twice. It returns false where it does not.
func (t *Trial) fuzzAdmit(h *harness.Harness, f fields) bool {
	before := f.copied()
	record := f.record()
	result, thrown := t.call(h, record, framework.Mutating)
	t.fuzzAnswer(f, result, thrown)
	if thrown != nil {
		return false
	}
	if f.old != nil && !same(before.old, f.old) {
		t.Errorf("O1: %s: Admit changed the old object (- was, + is):\n%s", f, diff(before.old, f.old))
	}
	if result.Err != nil || f.object == nil {
		return result.Err == nil
	}
	once := f.copied()
	record.GetReinvocationContext().SetIsReinvoke()
	again, thrown := t.call(h, record, framework.Mutating)
	t.fuzzAnswer(f, again, thrown)
	switch {
	case thrown != nil:
		return false
	case again.Err != nil:
		t.Errorf("A1: %s: Admit admits it and, called again, refuses what it made of it: %s", f, again.Status.Message)
		return false
	case !same(once.object, f.object):
		t.Errorf("A1: %s: Admit, called again, changed the object again (- once, + twice):\n%s", f, diff(once.object, f.object))
	}
	return true
}

// fuzzAnswer looks at what every call has: a panic, an error, the caches.
func (t *Trial) fuzzAnswer(f fields, result harness.Result, thrown *harness.PanicError) {
	if thrown != nil {
		t.Errorf("P1: %s: %v", f, thrown)
		return
	}
	for _, edit := range result.CacheEdits {
		t.Errorf("C1: %s: the plugin changed a cached object: %s", f, edit)
	}
	if result.Err == nil {
		return
	}
	// The very type counts, as in responsewriters.ErrorToAPIStatus.
	if _, ok := result.Err.(apierrors.APIStatus); !ok {
		t.Errorf("E1: %s: the plugin refuses with a %T, which is no Status: %s", f, result.Err, result.Status.Message)
	}
}

// copied returns the fields with copies of the objects.
func (f fields) copied() fields {
	for _, object := range []*runtime.Object{&f.object, &f.old, &f.options} {
		if *object != nil {
			*object = (*object).DeepCopyObject()
		}
	}
	return f
}

// changed tells what of the fields is not any more what it was.
func (f fields) changed(is fields) []string {
	var all []string
	for _, each := range []struct {
		what    string
		was, is runtime.Object
	}{{"the object", f.object, is.object}, {"the old object", f.old, is.old}, {"the options", f.options, is.options}} {
		if !equality.Semantic.DeepEqual(each.was, each.is) {
			all = append(all, fmt.Sprintf("%s (- was, + is):\n%s", each.what, diff(each.was, each.is)))
		}
	}
	return all
}
