package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/admissiontest/admissiontest/internal/match"
)

// shortest is the number of bytes of the shortest value that is removed from text. A
// shorter one occurs by chance.
const shortest = 4

// longer is the number of bytes of a value that does not occur in a word by chance.
const longer = 16

// Set collects values that are not shown. The zero value is empty, and a nil Set hides nothing. Its
// methods can be called by several goroutines at the same time.
type Set struct {
	mu     sync.Mutex
	values map[string]bool
}

// Fields returns a copy of a decoded JSON object, or of one that contains such objects,
// in which the values that are not shown are match.Hidden. They need not be in the Set. If the Set is
// nil, Fields returns the object as it is.
func (s *Set) Fields(fields map[string]any) map[string]any {
	if s == nil {
		return fields
	}
	return markedObject(fields, "", "")
}

// Add collects the values in a decoded JSON object that Fields would mark.
func (s *Set) Add(fields map[string]any) {
	if s != nil {
		s.collect(s.Fields(fields), false)
	}
}

// collect collects the strings in a value that are hidden, or in a hidden value.
func (s *Set) collect(value any, hidden bool) {
	switch value := value.(type) {
	case match.Hidden:
		s.collect(value.Value, true)
	case string:
		if hidden {
			s.text(value)
		}
	case []any:
		for _, item := range value {
			s.collect(item, hidden)
		}
	case map[string]any:
		for _, item := range value {
			s.collect(item, hidden)
		}
	}
}

// AddHeader collects the credentials in the header of a request.
func (s *Set) AddHeader(header map[string][]string) {
	if s == nil {
		return
	}
	for name, values := range header {
		for _, value := range values {
			if isCredential(name) {
				_, token, _ := strings.Cut(value, " ") // after the scheme: "Bearer "
				s.text(value)
				s.text(token)
			}
		}
	}
}

// text collects a string in each form in which a server repeats it: as it is, in JSON, and
// both without the base64 of the data of a Secret.
func (s *Set) text(text string) {
	forms := []string{text}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
		forms = append(forms, string(decoded))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]bool{}
	}
	for _, form := range forms {
		for _, one := range []string{form, strings.TrimSpace(form), inJSON(form, true), inJSON(form, false)} {
			if len(one) >= shortest {
				s.values[one] = true
			}
		}
	}
}

// inJSON returns a string as a part of a JSON string. The characters <, > and & can be escaped there.
func inJSON(text string, escapeHTML bool) string {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(text) // a string can always be encoded
	return strings.Trim(encoded.String(), "\"\n")
}

// Matcher returns a Matcher whose texts do not have the values.
func (s *Set) Matcher() match.Matcher { return match.Matcher{Hide: s.Text} }

// Text returns text without the values and without what Text of the package removes.
func (s *Set) Text(text string) string {
	if s == nil {
		return text
	}
	s.mu.Lock()
	values := slices.Collect(maps.Keys(s.values))
	s.mu.Unlock()
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, value := range values {
		text = replaceWord(text, value)
	}
	return Text(text)
}

// replaceWord replaces a value in text. A short one is not replaced where it is a part of a longer word.
func replaceWord(text, value string) string {
	var out strings.Builder
	for from := 0; ; {
		found := strings.Index(text[from:], value)
		if found < 0 {
			out.WriteString(text[from:])
			return out.String()
		}
		start := from + found
		end := start + len(value)
		if len(value) < longer && (inWord(text, start) || inWord(text, end)) {
			end = start + 1
			out.WriteString(text[from:end])
		} else {
			out.WriteString(text[from:start] + match.Redacted)
		}
		from = end
	}
}

// inWord reports whether a word goes on at an index.
func inWord(text string, index int) bool {
	return index > 0 && index < len(text) && isWord(text[index-1]) && isWord(text[index])
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
