package match

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longest is the number of characters of a value that are shown.
const longest = 300

// Show returns a value as compact JSON, which is cut if it is long, or "(absent)".
func (m Matcher) Show(value any) string {
	switch value := value.(type) {
	case Absent:
		return "(absent)"
	case Hidden:
		return Redacted
	case unencodable:
		return fmt.Sprintf("a Go value of type %s, which cannot be encoded as JSON", value.goType)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return m.Show(unencodable{fmt.Sprintf("%T", value)})
	}
	return m.Cut(strings.TrimSuffix(text.String(), "\n"))
}

// show is Show of the Matcher that shows all values.
func show(value any) string { return Matcher{}.Show(value) }

// Cut returns a string without what is not shown. If it is still long, Cut shortens it and adds its length.
func (m Matcher) Cut(text string) string {
	if m.Hide != nil {
		text = m.Hide(text)
	}
	length := utf8.RuneCountInString(text)
	if length <= longest {
		return text
	}
	return fmt.Sprintf("%s… (cut: %d characters in all)", string([]rune(text)[:longest]), length)
}

// Describe returns a description of the values that an expected value matches: an
// operator in words, anything else as Show returns it.
func (m Matcher) Describe(expected any) string {
	if name, argument, ok := Operator(expected); ok {
		return m.describe(operation{name, argument})
	}
	return m.Show(expected)
}

// OneOf describes the expected values in a list: "one of 200, 201", or only the one.
func (m Matcher) OneOf(choices any) string {
	list, _ := shape(choices).([]any)
	texts := make([]string, 0, len(list))
	for _, choice := range list {
		texts = append(texts, m.Describe(choice))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return m.Cut("one of " + strings.Join(texts, ", "))
}

func (m Matcher) describe(op operation) string {
	argument := shape(op.argument)
	list, _ := argument.([]any)
	switch op.name {
	case opOneOf:
		return m.OneOf(list)
	case opNot:
		return "a value that is not " + m.Describe(argument)
	case opAbsent:
		if argument == false {
			return "any value, also null"
		}
		return "no such field"
	case opExact:
		return "exactly " + m.Describe(argument)
	case opContains:
		if text, ok := argument.(string); ok {
			return "a string that contains " + m.Show(text) + ", or a list that contains it"
		}
		return "a list with an item that is " + m.Describe(argument)
	case opContainsAll:
		texts := make([]string, 0, len(list))
		for _, part := range list {
			texts = append(texts, m.Describe(part))
		}
		return m.Cut("a list with " + strings.Join(texts, " and "))
	case opStartsWith:
		return "a string that begins with " + m.Show(argument)
	case opNonEmpty:
		return "a value that is not empty"
	case opNumber:
		return m.describeRange(argument)
	case opJSON:
		return "a string that is JSON: " + m.Describe(argument)
	case opJWT:
		return "a JSON Web Token with the claims " + m.Describe(argument)
	case opEntries:
		return "a map whose entries are " + m.Describe(argument)
	default:
		return m.Show(map[string]any{op.name: argument})
	}
}

func (m Matcher) describeRange(argument any) string {
	bounds, _ := argument.(map[string]any)
	var parts []string
	if least, ok := bounds[boundAtLeast]; ok {
		parts = append(parts, "at least "+m.Show(least))
	}
	if most, ok := bounds[boundAtMost]; ok {
		parts = append(parts, "at most "+m.Show(most))
	}
	return "a number of " + strings.Join(parts, " and ")
}

// Key returns the path of a field: with a dot where the name is plain, else in
// brackets and quotes.
func Key(path, key string) string {
	if !isPlain(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of an item of a list.
func Index(path string, index int) string {
	return path + "[" + strconv.Itoa(index) + "]"
}

func isPlain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r == '.' || r == '[' || r == ']' || r == '"' || r <= ' ' || r == utf8.RuneError
	})
}
