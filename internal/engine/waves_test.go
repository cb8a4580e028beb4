package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCRDsLast(t *testing.T) {
	t.Parallel()
	given := func(id string, kinds ...string) *scenarioCase {
		c := &scenarioCase{id: id}
		for _, kind := range kinds {
			c.given = append(c.given, map[string]any{"kind": kind})
		}
		return c
	}
	cases := []*scenarioCase{
		given("a", "ConfigMap", "CustomResourceDefinition"), given("b"),
		given("c", "CustomResourceDefinition"), given("d", "ConfigMap"),
	}
	var got []string
	for _, c := range crdsLast(cases) {
		got = append(got, c.id)
	}
	if diff := cmp.Diff([]string{"b", "d", "a", "c"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if cases[0].id != "a" {
		t.Error("the given slice was written to")
	}
}
