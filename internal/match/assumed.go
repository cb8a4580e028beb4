package match

import (
	"maps"
	"slices"
)

// Assumption is a field of an expectation whose name can be wrong without a difference: the expectation
// holds if there is no such field, or it is below $not.
type Assumption struct {
	// Written is the path to the field in the expectation, with operators: strings for fields and
	// operators, ints for items.
	Written Path
	// Field is the path to the field in the value: strings for fields, ints for any item.
	Field Path
}

// Assumptions returns the assumptions of a valid expectation, in the order of the fields' names. It
// returns none for what is in the texts of $json and below $entries.
func Assumptions(expected any) []Assumption {
	var found assumptions
	found.in(expected, Assumption{}, false)
	return found
}

type assumptions []Assumption

// in adds the assumptions of a value at a place. Negated is true below $not.
func (s *assumptions) in(expected any, at Assumption, negated bool) {
	switch want := shape(expected).(type) {
	case map[string]any:
		if name, argument, ok := Operator(want); ok {
			s.operator(operation{name, argument}, at.operator(name), negated)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			here := Assumption{at.Written.with(key), at.Field.with(key)}
			if negated || (Matcher{}).holds(want[key], Absent{}) {
				*s = append(*s, here)
			}
			s.in(want[key], here, negated)
		}
	case []any:
		for i, item := range want {
			s.in(item, Assumption{at.Written.with(i), at.Field.with(i)}, negated)
		}
	}
}

// operator adds the assumptions of the argument of an operator.
func (s *assumptions) operator(op operation, at Assumption, negated bool) {
	argument := shape(op.argument)
	list, _ := argument.([]any)
	switch op.name {
	case opNot:
		s.in(argument, at, true)
	case opExact:
		s.in(argument, at, negated)
	case opOneOf:
		for i, choice := range list {
			s.in(choice, at.operator(i), negated)
		}
	case opContains:
		s.in(argument, at.item(), negated)
	case opContainsAll:
		for i, part := range list {
			s.in(part, at.operator(i).item(), negated)
		}
	}
}

// operator returns the place of the argument of an operator, or of an item of it.
func (a Assumption) operator(step any) Assumption { return Assumption{a.Written.with(step), a.Field} }

// item returns the place of an item of the value.
func (a Assumption) item() Assumption { return Assumption{a.Written, a.Field.with(0)} }
