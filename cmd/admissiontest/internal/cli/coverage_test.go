package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

// list --coverage counts each behaviour once; one without a scenario is missing.
func TestListCoverage(t *testing.T) {
	got := onCatalogue(t.Context(), "list", "--coverage", "REINV", "ORDER", "-o", "json")
	var list coverageList
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("got %v, %v, %s; want two areas", list, err, got.stderr)
	}
	for _, area := range list.Items {
		if sum := area.Covered + area.Reasoned + area.Other + len(area.Missing); area.Behaviours < 20 || sum != area.Behaviours || len(area.Missing) > 0 {
			t.Errorf("got %+v, want all of some 20 behaviours, and none missing", area)
		}
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Area == "reinvocation" {
			all[i].Spec.Behaviours = nil
		}
	}
	less, err := coverage(all, []string{"REINV"})
	if err != nil || len(less[0].Missing) < 10 {
		t.Errorf("without the scenarios of an area: got %+v, %v; want its behaviours missing", less, err)
	}
	text := onCatalogue(t.Context(), "list", "--coverage", "REINV")
	if !strings.HasPrefix(text.stdout, "AREA") || !strings.Contains(text.stdout, "\ntotal ") {
		t.Errorf("got %s, want a table with a total", text.stdout)
	}
	if got := onCatalogue(t.Context(), "list", "--coverage", "REINF"); got.code != 2 || !strings.Contains(got.stderr, `did you mean "REINV"`) {
		t.Errorf("got %d, %s; want exit code 2 and a suggestion", got.code, got.stderr)
	}
}
