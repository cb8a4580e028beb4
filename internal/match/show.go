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

// Describe returns a description of the values that an expected value matches: the values in $oneOf, and
// anything else as Show returns it.
func (m Matcher) Describe(expected any) string {
	if name, argument, ok := Operator(expected); ok && name == opOneOf {
		return m.OneOf(argument)
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
