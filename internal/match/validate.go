package match

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// The fields of the argument of $number.
const (
	boundAtLeast = "atLeast"
	boundAtMost  = "atMost"
)

// OperatorError is an error in an operator of an expected value.
type OperatorError struct {
	// Path is the path from the expected value to the map with the operator:
	// strings for fields and operators, ints for items of lists.
	Path Path
	// Operator is the wrong key, "$contain".
	Operator string
	// Problem says what is wrong and what was expected.
	Problem string
	// Hint is the operator that is probably meant, "$contains", or "".
	Hint string
}

// Error returns the path, the problem and the hint.
func (e *OperatorError) Error() string {
	text := fmt.Sprintf("read operator %s: %s", e.Operator, e.Problem)
	if len(e.Path) > 0 {
		text = fmt.Sprintf("read operator %s in %s: %s", e.Operator, e.Path, e.Problem)
	}
	if e.Hint != "" {
		text += fmt.Sprintf("; did you mean %s?", e.Hint)
	}
	return text
}

// ValidateOperators checks that every operator in an expected value exists, is the
// only key of its map and has a valid argument. The error is an *OperatorError
// for the first problem in the order of the fields' names.
func ValidateOperators(expected any) error {
	if problem := validate(expected, nil); problem != nil {
		return problem
	}
	return nil
}

func validate(expected any, path Path) *OperatorError {
	switch value := shape(expected).(type) {
	case map[string]any:
		if name, argument, ok := Operator(value); ok {
			return validateOperator(operation{name, argument}, path)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if LooksLikeOperator(key) {
				return &OperatorError{Path: path, Operator: key, Problem: fmt.Sprintf(
					"an operator must be the only key of its map; this map has %d keys", len(value))}
			}
			if problem := validate(value[key], path.with(key)); problem != nil {
				return problem
			}
		}
	case []any:
		for i, item := range value {
			if problem := validate(item, path.with(i)); problem != nil {
				return problem
			}
		}
	}
	return nil
}

func validateOperator(op operation, path Path) *OperatorError {
	wrong := func(problem string) *OperatorError {
		return &OperatorError{Path: path, Operator: op.name, Problem: problem}
	}
	argument := shape(op.argument)
	switch op.name {
	case opOneOf, opContainsAll:
		if list, ok := argument.([]any); !ok || len(list) == 0 {
			return wrong("expected a list with at least one item, got " + show(argument))
		}
	case opAbsent:
		if _, ok := argument.(bool); !ok {
			return wrong("expected true or false, got " + show(argument))
		}
	case opNonEmpty:
		if argument != true {
			return wrong("expected true, got " + show(argument))
		}
	case opStartsWith:
		if text, ok := argument.(string); !ok || text == "" {
			return wrong("expected a string that is not empty, got " + show(argument))
		}
	case opContains:
		if argument == "" {
			return wrong(`expected a string to look for, got "", which is a part of every text`)
		}
	case opNumber:
		if problem := rangeProblem(argument); problem != "" {
			return wrong(problem)
		}
		return nil
	case opNot, opExact, opJSON, opJWT, opEntries:
	default:
		unknown := wrong("no such operator; expected one of " + strings.Join(Operators(), ", "))
		unknown.Hint = suggest.Nearest(op.name, Operators())
		return unknown
	}
	return validate(argument, path.with(op.name))
}

// rangeProblem returns what is wrong with the argument of $number, or "".
func rangeProblem(argument any) string {
	bounds, ok := argument.(map[string]any)
	if !ok || len(bounds) == 0 {
		return "expected a map with atLeast, atMost or both, got " + show(argument)
	}
	for _, key := range slices.Sorted(maps.Keys(bounds)) {
		if key != boundAtLeast && key != boundAtMost {
			return fmt.Sprintf("expected only atLeast and atMost, got %q", key)
		}
		if _, ok := number(bounds[key]); !ok {
			return fmt.Sprintf("expected a number for %s, got %s", key, show(bounds[key]))
		}
	}
	least, hasLeast := number(bounds[boundAtLeast])
	most, hasMost := number(bounds[boundAtMost])
	if hasLeast && hasMost && least.compare(most) > 0 {
		return fmt.Sprintf("expected atLeast <= atMost, got atLeast %s and atMost %s",
			show(bounds[boundAtLeast]), show(bounds[boundAtMost]))
	}
	return ""
}
