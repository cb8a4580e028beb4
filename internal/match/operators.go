package match

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The operators.
const (
	opOneOf       = "$oneOf"
	opNot         = "$not"
	opAbsent      = "$absent"
	opExact       = "$exact"
	opContains    = "$contains"
	opContainsAll = "$containsAll"
	opStartsWith  = "$startsWith"
	opNonEmpty    = "$nonEmpty"
	opNumber      = "$number"
	opJSON        = "$json"
	opJWT         = "$jwt"
	opEntries     = "$entries"
)

// Operators returns the names of all operators, with "$".
func Operators() []string {
	return []string{
		opOneOf, opNot, opAbsent, opExact, opContains, opContainsAll,
		opStartsWith, opNonEmpty, opNumber, opJSON, opJWT, opEntries,
	}
}

// Operator reports whether an expected value is an operator: a map whose only
// key begins with "$". It returns that key, which may be unknown, and its value.
func Operator(expected any) (name string, argument any, ok bool) {
	mapping, _ := shape(expected).(map[string]any)
	if len(mapping) != 1 {
		return "", nil, false
	}
	for name, argument = range mapping {
	}
	if !LooksLikeOperator(name) {
		return "", nil, false
	}
	return name, argument, true
}

// LooksLikeOperator reports whether a key is meant as an operator: it begins with "$", but not
// with a placeholder, "$(policy.p)/key".
func LooksLikeOperator(key string) bool {
	return strings.HasPrefix(key, "$") && !strings.HasPrefix(key, "$(")
}

// operation is a valid operator with its argument.
type operation struct {
	name     string
	argument any
}

func (m Matcher) operate(op operation, actual any, path string) []Difference {
	argument := shape(op.argument)
	failed := func(holds bool) []Difference {
		if holds {
			return nil
		}
		return m.differ(path, m.describe(op), actual)
	}
	switch op.name {
	case opOneOf:
		return m.oneOf(argument.([]any), actual, path)
	case opNot:
		return failed(actual != nil && actual != (any)(Absent{}) && !m.holds(argument, actual))
	case opAbsent:
		return failed((actual == (Absent{})) == argument.(bool))
	case opExact:
		return m.exactly().differences(argument, actual, path)
	case opContains:
		return failed(m.contains(argument, actual))
	case opContainsAll:
		return m.containsAll(argument.([]any), actual, path)
	case opStartsWith:
		text, isText := actual.(string)
		return failed(isText && strings.HasPrefix(text, argument.(string)))
	case opNonEmpty:
		return failed(!isEmpty(actual))
	case opNumber:
		return failed(inRange(argument.(map[string]any), actual))
	case opJSON:
		return m.inJSON(argument, actual, path)
	case opJWT:
		return m.inToken(argument, actual, path)
	case opEntries:
		mapping, isMapping := actual.(map[string]any)
		if !isMapping {
			return failed(false)
		}
		return m.differences(argument, entries(mapping), Key(path, opEntries))
	default:
		return failed(false)
	}
}

// exactly returns the Matcher for values inside of $exact.
func (m Matcher) exactly() Matcher {
	m.exact = true
	return m
}

func (m Matcher) oneOf(choices []any, actual any, path string) []Difference {
	for _, choice := range choices {
		if m.holds(choice, actual) {
			return nil
		}
	}
	if len(choices) == 1 {
		return m.differences(choices[0], actual, path)
	}
	return m.differ(path, m.OneOf(choices), actual)
}

func (m Matcher) contains(part, actual any) bool {
	switch whole := actual.(type) {
	case []any:
		for _, item := range whole {
			if m.holds(part, item) {
				return true
			}
		}
	case string:
		text, isText := part.(string)
		return isText && strings.Contains(whole, text)
	}
	return false
}

func (m Matcher) containsAll(parts []any, actual any, path string) []Difference {
	items, isList := actual.([]any)
	if !isList {
		return m.differ(path, m.describe(operation{opContainsAll, parts}), actual)
	}
	assigned := Assign(len(parts), len(items), func(part, item int) bool {
		return m.holds(parts[part], items[item])
	})
	var found []Difference
	for part, item := range assigned {
		if item < 0 {
			found = append(found, m.differ(path, "an item that is "+m.Describe(parts[part]), actual)...)
		}
	}
	return found
}

func (m Matcher) inJSON(want, actual any, path string) []Difference {
	text, isText := actual.(string)
	if !isText {
		return m.differ(path, m.describe(operation{opJSON, want}), actual)
	}
	value, err := decode([]byte(text))
	if err != nil {
		return []Difference{{
			Path:     path,
			Expected: m.describe(operation{opJSON, want}),
			Actual:   fmt.Sprintf("%s (%v)", m.Show(actual), err),
		}}
	}
	return m.differences(want, value, Key(path, opJSON))
}

// inToken compares the claims of a token. They are shown even if the token is not: without its signature, it cannot
// be used.
func (m Matcher) inToken(want, actual any, path string) []Difference {
	has, err := claims(reveal(actual))
	if err != nil {
		return []Difference{{Path: path, Expected: m.describe(operation{opJWT, want}), Actual: fmt.Sprintf("%s (%v)", m.Show(actual), err)}}
	}
	return m.differences(want, has, Key(path, opJWT))
}

// claims returns the claims of a JSON Web Token (RFC 7519). If it has iat, exp and nbf are the seconds after that: an
// expectation cannot know the time.
func claims(actual any) (map[string]any, error) {
	text, _ := actual.(string)
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, errors.New("not a JSON Web Token: expected three parts with dots between them")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, errors.New("not a JSON Web Token: its second part is not base64url")
	}
	value, err := decode(body)
	has, isMapping := value.(map[string]any)
	if err != nil || !isMapping {
		return nil, errors.New("not a JSON Web Token: its second part is not a JSON object")
	}
	if issued, ok := number(has["iat"]); ok {
		for _, name := range []string{"exp", "nbf"} {
			if at, ok := number(has[name]); ok {
				has[name] = at.float - issued.float
			}
		}
	}
	return has, nil
}

// entries returns a map as a list of {key, value}, in the order of the keys.
func entries(mapping map[string]any) []any {
	list := make([]any, 0, len(mapping))
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		list = append(list, map[string]any{"key": key, "value": mapping[key]})
	}
	return list
}

// decode decodes exactly one JSON value, with numbers as json.Number.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode JSON: expected one value, got more text after it")
	}
	return value, nil
}

func isEmpty(actual any) bool {
	if value, ok := number(actual); ok {
		return value.float == 0
	}
	switch value := actual.(type) {
	case nil, Absent:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}

func inRange(bounds map[string]any, actual any) bool {
	value, ok := number(actual)
	if !ok {
		return false
	}
	if least, ok := number(bounds[boundAtLeast]); ok && value.compare(least) < 0 {
		return false
	}
	if most, ok := number(bounds[boundAtMost]); ok && value.compare(most) > 0 {
		return false
	}
	return true
}

// Assign assigns different actual values to as many expected ones as possible, by
// index. It returns the index of the actual value for each expected one, or -1. If
// several assignments have the same size, the result depends only on the order. It
// calls fits once for each pair.
func Assign(expected, actual int, fits func(expected, actual int) bool) []int {
	assignment := assignment{
		fits:   make([][]bool, expected),
		holder: slices.Repeat([]int{-1}, actual),
	}
	for e := range expected {
		assignment.fits[e] = make([]bool, actual)
		for a := range actual {
			assignment.fits[e][a] = fits(e, a)
		}
	}
	for e := range expected {
		assignment.assign(e, make([]bool, actual))
	}
	result := slices.Repeat([]int{-1}, expected)
	for a, e := range assignment.holder {
		if e >= 0 {
			result[e] = a
		}
	}
	return result
}

type assignment struct {
	fits   [][]bool
	holder []int // by actual index: the index of the expected one, or -1
}

// assign finds an actual value for e, and moves others if necessary.
func (s *assignment) assign(e int, tried []bool) bool {
	for a := range s.holder {
		if !s.fits[e][a] || tried[a] {
			continue
		}
		tried[a] = true
		if s.holder[a] < 0 || s.assign(s.holder[a], tried) {
			s.holder[a] = e
			return true
		}
	}
	return false
}
