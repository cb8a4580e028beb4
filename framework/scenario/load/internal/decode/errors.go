package decode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// MaxErrors is the largest number of errors that are reported for a file.
const MaxErrors = 100

// Limit returns the first MaxErrors errors of a file and, if there are more, one that says
// how many.
func Limit(problems []*scenario.Error) []*scenario.Error {
	if len(problems) <= MaxErrors {
		return problems
	}
	slices.SortStableFunc(problems, compare)
	last := problems[MaxErrors-1]
	return append(problems[:MaxErrors:MaxErrors], &scenario.Error{
		File: last.File, Line: last.Line, Column: last.Column,
		Message: fmt.Sprintf("and %d more errors; expected a file of scenarios", len(problems)-MaxErrors), Hint: "fix those above first",
	})
}

// Join sorts errors by the rank of their file and by position, removes duplicates,
// and joins them.
func Join(list []*scenario.Error, rank map[string]int) error {
	slices.SortStableFunc(list, func(a, b *scenario.Error) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), compare(a, b))
	})
	list = slices.CompactFunc(list, func(a, b *scenario.Error) bool { return *a == *b })
	all := make([]error, len(list))
	for i, one := range list {
		all[i] = one
	}
	return errors.Join(all...)
}

// compare orders errors by file and position.
func compare(a, b *scenario.Error) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
