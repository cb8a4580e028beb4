package policycoverage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/providers"
)

// load returns the options of a run of the PolicyTests in files of testdata.
func load(t *testing.T, files ...string) engine.Options {
	t.Helper()
	for i := range files {
		files[i] = "testdata/" + files[i]
	}
	scenarios, err := scenario.Load(scenario.LoadOptions{}, files...)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Options{Scenarios: scenarios, Provider: providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }})}
}

// TestMeasure: what the cases never decide is reported, with its position, what cannot be observed is unknown, and of policies
// whose parts are all decided nothing is reported. The evaluator of k8s.io/apiserver in this process has the same values.
func TestMeasure(t *testing.T) {
	tests, err := observe(t.Context(), load(t, "gaps.yaml", "mutating.yaml", "unknown.yaml", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, each := range tests {
		c := each.coverage()
		fmt.Fprintf(&text, "%s: %d cases, %d of %d decided, %d unknown\n", c.Name, c.Cases, c.Decided, c.Parts, c.Unknown)
		for _, u := range c.Undecided {
			fmt.Fprintf(&text, "  %d:%d %s: %s%s (%s)\n", u.Line, u.Column, u.Field, u.Never, u.Unknown, u.Hint)
		}
		if strings.HasPrefix(c.Name, "full") && (len(c.Undecided) > 0 || c.Decided != c.Parts) {
			t.Errorf("%s: got %d of %d decided, want all", c.Name, c.Decided, c.Parts)
		}
	}
	golden.Compare(t, "testdata/coverage.txt", text.String())
	agree(t, tests)
}
