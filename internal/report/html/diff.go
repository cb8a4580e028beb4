package html

import "github.com/admissiontest/admissiontest/internal/report"

// comparison is what diff.tmpl is executed with.
type comparison struct {
	report.Diff
	Sides  []side
	Groups []group
}

// side is one of the two runs.
type side struct {
	Title, Target string
	report.Side
}

// group has the changes of one sort, by cause.
type group struct {
	ID, Title string
	Number    int
	Causes    []report.ChangeGroup
}

func newComparison(d report.Diff) comparison {
	return comparison{
		Diff:  d,
		Sides: []side{{"Before", describe(d.Before.Target), d.Before}, {"After", describe(d.After.Target), d.After}},
		Groups: []group{
			{"changed", "Changed verdict", len(d.Changed), report.GroupChanges(d.Changed)},
			{"new", "New", len(d.New), report.GroupChanges(d.New)},
			{"gone", "Gone", len(d.Gone), report.GroupChanges(d.Gone)},
		},
	}
}
