package rules

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// fuzzDepth and fuzzElements limit the size of random objects: some types contain themselves.
const (
	fuzzDepth    = 12
	fuzzElements = 3
)

// Fuzzed checks what holds for every object with one random object: data[0] selects a
// request of the Subject, data[1] the fields of its object that do not change, and the rest
// has the values of the other fields. Fill has functions for types that need more than
// random values.
func Fuzzed(subject check.Subject, data []byte, fill ...any) rule.Outcome {
	fuzzing := check.Rule{ID: "fuzz", Name: "fuzz", Check: func(t *check.T) {
		if len(data) == 0 {
			return
		}
		requests := t.Requests()
		request := requests[int(data[0])%len(requests)]
		h := t.Plugin()
		if len(data) > 1 {
			made, err := randomRequest(request, data[1:], fill)
			if err != nil {
				t.Fatalf("%v", err)
			}
			request = made
		}
		t.Reached()
		checkRequest(t, h, request)
	}}
	return check.NewT(subject).Run(fuzzing, rule.DefaultBudget)
}

// randomRequest returns a request with a random object. If the request has no object, the old
// object is random.
func randomRequest(request framework.Request, data []byte, fill []any) (changed framework.Request, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("fill the object of %s: %v: pass a function for the type to contract.Fuzz", request, thrown)
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
	replaceFields(reflect.ValueOf(object).Elem(), fresh.Elem(), data[0])
	object.GetObjectKind().SetGroupVersionKind(seed.GetObjectKind().GroupVersionKind())
	if is, failed := meta.Accessor(object); failed == nil {
		was, _ := meta.Accessor(seed)
		is.SetName(was.GetName())
		is.SetNamespace(was.GetNamespace())
	}
	*target = object
	return request, nil
}

// replaceFields replaces fields of an object by fresh values. Field i stays if bit i%8 of stay is
// set.
func replaceFields(object, fresh reflect.Value, stay byte) {
	for i := range object.NumField() {
		if stay>>(i%8)&1 == 0 && object.Field(i).CanSet() {
			object.Field(i).Set(fresh.Field(i))
		}
	}
}

// checkRequest sends a request through both phases.
func checkRequest(t *check.T, h *harness.Harness, request framework.Request) {
	f, ok := t.AttributesFor(h, request, framework.Mutating)
	if !ok {
		return // an API server never sends this, for instance because of the name of the old object
	}
	if check.WouldCall(h.Plugin(), framework.Mutating, f.Operation) && !fuzzAdmit(t, h, f) {
		return
	}
	if !check.WouldCall(h.Plugin(), framework.Validating, f.Operation) {
		return
	}
	before := check.TakeSnapshot(f)
	result, thrown := t.Call(h, f.Record(), framework.Validating)
	fuzzAnswer(t, f, result, thrown)
	if changes := before.Changes(); thrown == nil && changes != "" {
		t.Errorf("V1: %s: called in Validate, %s", f, changes)
	}
}

// fuzzAdmit calls Admit twice. It returns false if the plugin refuses or panics.
func fuzzAdmit(t *check.T, h *harness.Harness, f check.Attributes) bool {
	old, record := check.Copy(f.OldObject), f.Record()
	result, thrown := t.Call(h, record, framework.Mutating)
	fuzzAnswer(t, f, result, thrown)
	if thrown != nil {
		return false
	}
	if !check.Equal(old, f.OldObject) {
		t.Errorf("O1: %s: Admit changed the old object (- was, + is):\n%s", f, check.Diff(old, f.OldObject))
	}
	if result.Err != nil || f.Object == nil {
		return result.Err == nil
	}
	once := check.Copy(f.Object)
	record.GetReinvocationContext().SetIsReinvoke()
	again, thrown := t.Call(h, record, framework.Mutating)
	fuzzAnswer(t, f, again, thrown)
	switch {
	case thrown != nil:
		return false
	case again.Err != nil:
		t.Errorf("A1: %s: Admit, called again for its own result, refused it: %s", f, again.Status.Message)
		return false
	case !check.Equal(once, f.Object):
		t.Errorf("A1: %s: Admit, called again, changed the object again (- after the first call, + after the second):\n%s", f, check.Diff(once, f.Object))
	}
	return true
}

// fuzzAnswer reports a panic, an error that is no Status, and changes of cached objects.
func fuzzAnswer(t *check.T, f check.Attributes, result harness.Result, thrown *harness.PanicError) {
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
	// Only the type of the error itself counts, as in responsewriters.ErrorToAPIStatus.
	if _, ok := result.Err.(apierrors.APIStatus); !ok {
		t.Errorf("E1: %s: refused with a %T, want a Status error: %s", f, result.Err, result.Status.Message)
	}
}
