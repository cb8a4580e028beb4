package contract

import (
	"fmt"
	"testing"

	"sigs.k8s.io/randfill"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// Fuzz sends requests with random objects to the plugin. The fuzz data selects a request of the
// Subject and replaces fields of its object with random values; name and namespace do not change.
// The seed corpus has the requests of the Subject and a few variants of each. go test checks only
// the seed corpus; go test -fuzz generates more data, and minimizes data that fails:
//
//	func FuzzPlugin(f *testing.F) {
//		contract.Fuzz(f, subject(), func(p *corev1.PodSpec, c randfill.Continue) {
//			c.FillNoCustom(p)
//			p.Overhead = nil // another plugin sets it
//		})
//	}
//
// Fill has functions for types for which random values are not enough, in the form of
// [randfill.Filler.Funcs]. Fuzz adds the functions for the types of apimachinery. Most API groups
// have functions for their types in a package named fuzzer.
//
// Fuzz checks the rules that hold for every object, whether or not the plugin refuses it:
// the plugin does not panic (P1), Validate changes nothing (V1), Admit changes neither the
// old object (O1) nor caches (C1), Admit is idempotent (A1), and a refusal is a Status
// error (E1).
func Fuzz(f *testing.F, subject Subject, fill ...any) {
	f.Helper()
	if subject.Name == "" {
		subject.Name = f.Name()
	}
	plan := check.NewPlan(subject, nil, rule.Options{})
	for _, misuse := range plan.Misuse() {
		f.Error(misuse)
	}
	requests := len(subject.Requests())
	if requests == 0 || !check.Buildable(plan) {
		return
	}
	if err := validateFill(fill); err != nil {
		f.Fatal(err)
	}
	for i := range requests {
		f.Add([]byte{byte(i)})
		for _, more := range []string{"\x00", "\x01seed", "\xffanother seed"} {
			f.Add(append([]byte{byte(i)}, more...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if outcome := rules.Fuzzed(subject, data, fill...); outcome.Verdict == framework.Fail {
			t.Error(outcome.Reason)
		}
	})
}

// validateFill returns an error if randfill would panic because of one of the functions.
func validateFill(fill []any) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("contract.Fuzz: use function to fill objects: %v: want func(object *T, c randfill.Continue)", thrown)
		}
	}()
	randfill.New().Funcs(fill...)
	return nil
}
