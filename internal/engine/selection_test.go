package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
)

func catalogue() []scenario.Scenario {
	one := func(area, name string, level framework.Level) scenario.Scenario {
		return scenario.Scenario{Area: area, Metadata: scenario.Metadata{Name: name}, Spec: scenario.Spec{Level: level}}
	}
	return []scenario.Scenario{
		one("order", "order.by-name", framework.Must),
		one("order", "order.mutating-first", framework.Should),
		one("wire", "wire.tls.version", framework.Must),
	}
}

func TestSelect(t *testing.T) {
	should := engine.Filter{Levels: []framework.Level{framework.Should}}
	tests := map[string]struct {
		args   []string
		filter engine.Filter
		want   []string
	}{
		"no argument":       {want: []string{"order.by-name", "order.mutating-first", "wire.tls.version"}},
		"a name":            {args: []string{"order.by-name"}, want: []string{"order.by-name"}},
		"an area":           {args: []string{"order"}, want: []string{"order.by-name", "order.mutating-first"}},
		"a star over dots":  {args: []string{"w*version"}, want: []string{"wire.tls.version"}},
		"order of the list": {args: []string{"wire", "order.by-name", "wire"}, want: []string{"order.by-name", "wire.tls.version"}},
		"a level":           {filter: should, want: []string{"order.mutating-first"}},
		"a level of some":   {args: []string{"order"}, filter: should, want: []string{"order.mutating-first"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			selected, err := engine.Select(catalogue(), test.args, test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range selected {
				got = append(got, s.Metadata.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	tests := map[string]struct {
		args   []string
		levels []framework.Level
		all    []scenario.Scenario
		is     error
		says   string
	}{
		"a misspelt name":      {args: []string{"order.by-nane"}, all: catalogue(), is: engine.ErrUnknownName, says: `did you mean "order.by-name"?`},
		"a misspelt area":      {args: []string{"wier"}, all: catalogue(), is: engine.ErrUnknownName, says: `did you mean "wire"?`},
		"nothing near":         {args: []string{"zebra"}, all: catalogue(), is: engine.ErrUnknownName, says: `select "zebra"`},
		"an empty name":        {args: []string{""}, all: []scenario.Scenario{{}}, is: engine.ErrUnknownName, says: `select ""`},
		"a malformed pattern":  {args: []string{"order.["}, all: catalogue(), is: engine.ErrUnknownName, says: "malformed"},
		"a pattern for none":   {args: []string{"order", "x*"}, all: catalogue(), is: engine.ErrNothingSelected, says: `select "x*"`},
		"a level that none is": {args: []string{"wire"}, levels: []framework.Level{framework.May, framework.Should}, all: catalogue(), is: engine.ErrNothingSelected, says: "none of 3 scenarios called wire has level MAY or SHOULD"},
		"an empty catalogue":   {is: engine.ErrNothingSelected, says: "no scenario to select from"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			selected, err := engine.Select(test.all, test.args, engine.Filter{Levels: test.levels})
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || selected != nil {
				t.Errorf("Select = %d scenarios, %v; want %v that says %s", len(selected), err, test.is, test.says)
			}
		})
	}
	_, err := engine.Select(catalogue(), []string{"wier", "ordr"}, engine.Filter{})
	if err == nil || !strings.Contains(err.Error(), `"wire"`) || !strings.Contains(err.Error(), `"order"`) {
		t.Errorf("Select reports only one misspelt name: %v", err)
	}
}
