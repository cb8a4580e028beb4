package pairs

import (
	"os"
	"strings"
	"testing"
)

// TestManual: docs/compare.md has the webhook and the policy of a pair, first without the other lists of containers.
func TestManual(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	manual, mended := read("../../docs/compare.md"), read("testdata/images/policy.yaml")
	const others = " + variables.spec.?initContainers.orValue([]) + variables.spec.?ephemeralContainers.orValue([])"
	for _, want := range []string{read("testdata/images/webhook.yaml"), strings.Replace(mended, others, "", 1), "expression: variables.spec.containers" + others} {
		if !strings.Contains(manual, want) {
			t.Errorf("docs/compare.md lacks:\n%s", want)
		}
	}
	if !strings.Contains(mended, others) {
		t.Error("the mended policy is another one")
	}
}

// TestSeeds: each mistake changes its policy.
func TestSeeds(t *testing.T) {
	for _, p := range pairs() {
		for _, with := range append(p.seeds[:], later()[p.name]) {
			policyOf(t, p.name, with)
		}
	}
}
