package execution

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// The cause of a failure is said in words that other scenarios share, and only if it is known.
func TestCause(t *testing.T) {
	refused, expect403 := response(403, "no"), &scenario.Expectation{Code: scenario.OneOrMore[int]{403}}
	const words = "only the words of a message or warning differ"
	for name, test := range map[string]struct {
		expect     *scenario.Expectation
		mismatches []expect.Mismatch
		want       string
	}{
		"a message":                  {expect403, []expect.Mismatch{{Path: "message"}}, words},
		"a message, any code":        {nil, []expect.Mismatch{{Path: "message"}}, ""},
		"a message and the code":     {expect403, []expect.Mismatch{{Path: "reason"}, {Path: "message"}}, ""},
		"a warning":                  {nil, []expect.Mismatch{{Path: "warnings[0]"}}, words},
		"no warnings":                {nil, []expect.Mismatch{{Path: "warnings", Actual: "0 items: []"}}, "warnings are missing"},
		"another number of warnings": {nil, []expect.Mismatch{{Path: "warnings", Actual: "2 items: []"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			failure := Failure{result: refused, expect: test.expect, mismatches: test.mismatches}
			if got := failure.cause(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
