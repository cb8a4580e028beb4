package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/admissiontest/admissiontest/internal/match"
)

// shortest is the number of bytes of the shortest value that is removed from text. A
// shorter one occurs by chance.
const shortest = 4

// longer is the number of bytes of a value that does not occur in a word by chance.
const longer = 16

// Set collects values that are not shown. The zero value is empty. Its methods can be
// called by several goroutines at the same time.
type Set struct {
	mu     sync.Mutex
	values map[string]bool
}

// Add collects the values in a decoded JSON object that Fields would mark.
func (s *Set) Add(fields map[string]any) {
	visit(func(in map[string]any, name string) { s.leaf(in[name]) }).mapping(fields, "", "")
}

// AddHeader collects the credentials in the header of a request.
func (s *Set) AddHeader(header map[string][]string) {
	for name, values := range header {
		for _, value := range values {
			if isCredential(name) {
				_, token, _ := strings.Cut(value, " ") // after the scheme: "Bearer "
				s.leaf(value)
				s.leaf(token)
			}
		}
	}
}

// leaf collects the texts in a value.
func (s *Set) leaf(value any) {
	switch value := value.(type) {
	case string:
		s.text(value)
	case []any:
		for _, item := range value {
			s.leaf(item)
		}
	case map[string]any:
		for _, item := range value {
			s.leaf(item)
		}
	}
}

// text collects a text in each form in which a server repeats it: as it is, in JSON, and
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
		encoded, _ := json.Marshal(form) // a string can always be encoded
		for _, one := range []string{form, strings.TrimSpace(form), strings.Trim(string(encoded), `"`)} {
			if len(one) >= shortest {
				s.values[one] = true
			}
		}
	}
}

// Text returns text without the values and without what Text of the package removes.
func (s *Set) Text(text string) string {
	s.mu.Lock()
	values := slices.Collect(maps.Keys(s.values))
	s.mu.Unlock()
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, value := range values {
		text = replaceWord(text, value)
	}
	return Text(text)
}

// replaceWord replaces a value where it is not a part of a longer word. A value that
// match.Cut has cut at its end is replaced too.
func replaceWord(text, value string) string {
	before, cut, long := ' ', strings.Contains(text, cutMark), len(value) >= longer
	if !cut && !strings.Contains(text, value) {
		return text
	}
	var out strings.Builder
	for rest := text; rest != ""; {
		found := prefix(rest, value, cut)
		after, _ := utf8.DecodeRuneInString(rest[found:])
		first, size := utf8.DecodeRuneInString(rest)
		last, _ := utf8.DecodeLastRuneInString(rest[:found])
		inWord := isWord(before) && isWord(first) || isWord(last) && isWord(after)
		if found > 0 && (long || !inWord) {
			out.WriteString(match.Redacted)
			before, rest = last, rest[found:]
			continue
		}
		out.WriteString(rest[:size])
		before, rest = first, rest[size:]
	}
	return out.String()
}

// cutMark is what match.Cut writes after a text that it cut.
const cutMark = "… (cut: "

// prefix returns the number of bytes at the beginning of text that are the value, or the
// beginning of it before cutMark, or 0. Cut is true if the text can contain cutMark.
func prefix(text, value string, cut bool) int {
	if strings.HasPrefix(text, value) {
		return len(value)
	}
	if !cut {
		return 0
	}
	if at := strings.Index(text, cutMark); at >= shortest && at < len(value) && strings.HasPrefix(value, text[:at]) {
		return at
	}
	return 0
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
