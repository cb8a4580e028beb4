package match_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/match"
)

type (
	m = map[string]any
	l = []any
)

// token returns a JSON Web Token with these claims.
func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
}

type example struct {
	name     string
	expected any
	actual   any
	holds    bool
}

func examples() []example {
	deep := m{"metadata": m{"name": "a", "labels": m{"example.com/x": "1", "y": "2"}}, "spec": m{"ports": l{m{"port": int64(80)}, m{"port": int64(81)}}}}
	return []example{
		{"part of a map", m{"metadata": m{"name": "a"}}, deep, true},
		{"field differs", m{"metadata": m{"name": "b"}}, deep, false},
		{"several differ", m{"metadata": m{"name": "b", "labels": m{"example.com/x": "2", "z": "3"}}}, deep, false},
		{"field absent", m{"metadata": m{"uid": "u"}}, deep, false},
		{"map absent", m{"status": m{"phase": "x"}}, deep, false},
		{"empty map where there is one", m{"spec": m{}}, deep, true},
		{"empty map where there is none", m{"status": m{}}, deep, false},
		{"map for a scalar", m{"metadata": m{"name": m{"first": "a"}}}, deep, false},
		{"list item by item", m{"spec": m{"ports": l{m{"port": 80}, m{}}}}, deep, true},
		{"list item differs", m{"spec": m{"ports": l{m{"port": 80}, m{"port": 82}}}}, deep, false},
		{"list too short", m{"spec": m{"ports": l{m{"port": 80}}}}, deep, false},
		{"list too long", l{1, 2}, l{1}, false},
		{"list for a map", l{}, m{}, false},
		{"empty lists", l{}, l{}, true},

		{"null and null", m{"a": nil}, m{"a": nil}, true},
		{"null and absent", m{"a": nil}, m{}, true},
		{"null and empty text", m{"a": nil}, m{"a": ""}, false},
		{"null and a nil map", m{"a": nil}, m{"a": map[string]any(nil)}, true},
		{"null and a nil list", m{"a": nil}, m{"a": []any(nil)}, true},
		{"scalar and null", m{"a": "x"}, m{"a": nil}, false},
		{"map and null", m{"a": m{"b": m{"$absent": true}}}, m{"a": nil}, false},

		{"int and int64", 3, int64(3), true},
		{"int and float64", 3, 3.0, true},
		{"int and json.Number", 3, json.Number("3"), true},
		{"uint and json.Number with exponent", uint8(30), json.Number("3e1"), true},
		{"uint64 and its text", uint64(math.MaxUint64), json.Number("18446744073709551615"), true},
		{"float and json.Number", 0.1, json.Number("0.1"), true},
		{"large integers apart", int64(math.MaxInt64), json.Number("9223372036854775806"), false},
		{"numbers differ", 3, 3.5, false},
		{"number and text", 3, "3", false},
		{"text and number", "3", 3, false},
		{"number out of range", json.Number("1e999"), json.Number("1e999"), true},
		{"number out of range and another", json.Number("1e999"), 1, false},
		{"infinity never equals", math.Inf(1), 1, false},
		{"quantities are text", "1000m", "1", false},
		{"bool", true, true, true},
		{"bool differs", true, false, false},
		{"bool and text", true, "true", false},
		{"text differs", "a", "b", false},
		{"text and list", "a", l{"a"}, false},
		{"text and absent", "a", match.Absent{}, false},

		{"typed map", m{"labels": map[string]string{"a": "b"}}, m{"labels": m{"a": "b"}}, true},
		{"typed list", m{"x": []string{"a"}}, m{"x": l{"a"}}, true},
		{"typed actual", m{"name": "a", "causes": l{m{"field": "f"}}}, &metav1.StatusDetails{Name: "a", Causes: []metav1.StatusCause{{Field: "f"}}}, true},
		{"typed texts and bools", l{metav1.StatusReasonInvalid, namedBool(true), int32(4)}, l{"Invalid", true, 4.0}, true},
		{"nil pointer is null", m{"a": (*int)(nil)}, m{}, true},
		{"pointer", m{"a": new(int)}, m{"a": 0}, true},
		{"marshaler", m{"t": metav1.NewTime(time.Unix(0, 0).UTC())}, m{"t": "1970-01-01T00:00:00Z"}, true},
		{"bytes", m{"b": []byte("hi")}, m{"b": "aGk="}, true},
		{"what JSON has not", m{"f": func() {}}, m{"f": "x"}, false},
		{"what JSON has not, twice", m{"f": func() {}}, m{"f": func() {}}, false},

		{"$oneOf first", m{"$oneOf": l{"a", "b"}}, "a", true},
		{"$oneOf last, deep", m{"a": m{"$oneOf": l{m{"x": 1}, m{"x": 2}}}}, m{"a": m{"x": 2, "y": 3}}, true},
		{"$oneOf none", m{"$oneOf": l{200, 201}}, 403, false},
		{"$oneOf of one shows what differs", m{"$oneOf": l{m{"x": 1}}}, m{"x": 2}, false},
		{"$oneOf absent", m{"a": m{"$oneOf": l{"x", m{"$absent": true}}}}, m{}, true},
		{"$not other", m{"$not": "a"}, "b", true},
		{"$not same", m{"a": m{"$not": "a"}}, m{"a": "a"}, false},
		{"$not where absent", m{"a": m{"$not": "a"}}, m{}, false},
		{"$not where null", m{"a": m{"$not": "a"}}, m{"a": nil}, false},
		{"$not or absent", m{"a": m{"$oneOf": l{nil, m{"$not": "a"}}}}, m{}, true},
		{"$not null where absent", m{"a": m{"$not": nil}}, m{}, false},
		{"$not of an operator", m{"$not": m{"$contains": "x"}}, "axb", false},
		{"$absent", m{"uid": m{"$absent": true}}, m{"name": "a"}, true},
		{"$absent where there is a value", m{"metadata": m{"uid": m{"$absent": true}}}, m{"metadata": m{"uid": "u"}}, false},
		{"$absent where there is null", m{"uid": m{"$absent": true}}, m{"uid": nil}, false},
		{"$absent below absent", m{"metadata": m{"labels": m{"x": m{"$absent": true}}}}, m{"metadata": m{}}, true},
		{"$absent below absent, beside a value", m{"labels": m{"x": m{"$absent": true}, "y": 1}}, m{}, false},
		{"$absent false", m{"uid": m{"$absent": false}}, m{"uid": nil}, true},
		{"$absent false where absent", m{"uid": m{"$absent": false}}, m{}, false},
		{"$exact", m{"$exact": m{"a": 1, "b": m{"c": m{"$nonEmpty": true}}}}, m{"a": 1, "b": m{"c": 2}}, true},
		{"$exact one more", m{"$exact": m{"a": 1}}, m{"a": 1, "b": 2}, false},
		{"$exact one more below", m{"x": m{"$exact": l{m{"a": 1}}}}, m{"x": l{m{"a": 1, "b": 2}}}, false},
		{"$exact one less", m{"$exact": m{"a": 1}}, m{}, false},
		{"$contains item", m{"$contains": m{"name": "a"}}, l{m{"name": "b"}, m{"name": "a", "x": 1}}, true},
		{"$contains no item", m{"$contains": m{"name": "a"}}, l{m{"name": "b"}}, false},
		{"$contains part", m{"$contains": "den"}, "denied", true},
		{"$contains no part", m{"$contains": "nop"}, "denied", false},
		{"$contains number in a string", m{"$contains": 1}, "1", false},
		{"$contains in a map", m{"$contains": "a"}, m{"a": 1}, false},
		{"$containsAll", m{"$containsAll": l{"c", "a"}}, l{"a", "b", "c"}, true},
		{"$containsAll lacks two", m{"$containsAll": l{"c", "d", "e"}}, l{"a", "b", "c"}, false},
		{"$containsAll needs an item each", m{"$containsAll": l{"a", "a"}}, l{"a", "b"}, false},
		{"$containsAll moves items", m{"$containsAll": l{m{}, m{"a": 1}}}, l{m{"a": 1}, m{"b": 1}}, true},
		{"$containsAll in a string", m{"$containsAll": l{"a"}}, "a", false},
		{"$startsWith", m{"$startsWith": "den"}, "denied", true},
		{"$startsWith not", m{"$startsWith": "nied"}, "denied", false},
		{"$startsWith in a list", m{"$startsWith": "a"}, l{"a"}, false},
		{"$nonEmpty text", m{"$nonEmpty": true}, "a", true},
		{"$nonEmpty false", m{"$nonEmpty": true}, false, true},
		{"$nonEmpty map", m{"$nonEmpty": true}, m{"a": nil}, true},
		{"$nonEmpty list", m{"$nonEmpty": true}, l{nil}, true},
		{"$nonEmpty number", m{"$nonEmpty": true}, -1, true},
		{"$nonEmpty absent", m{"a": m{"$nonEmpty": true}}, m{}, false},
		{"$nonEmpty null", m{"$nonEmpty": true}, nil, false},
		{"$nonEmpty empty text", m{"$nonEmpty": true}, "", false},
		{"$nonEmpty empty list", m{"$nonEmpty": true}, l{}, false},
		{"$nonEmpty empty map", m{"$nonEmpty": true}, m{}, false},
		{"$nonEmpty zero", m{"$nonEmpty": true}, 0.0, false},
		{"$number at the bounds", l{m{"$number": m{"atLeast": 1, "atMost": 9}}, m{"$number": m{"atMost": 9}}}, l{1, json.Number("9")}, true},
		{"$number too small", m{"$number": m{"atLeast": 1}}, 0.5, false},
		{"$number too large", m{"$number": m{"atLeast": 1, "atMost": 9}}, 10, false},
		{"$number of a string", m{"$number": m{"atLeast": 1}}, "5", false},
		{"$json", m{"$json": m{"a": l{1}}}, `{"a": [1.0], "b": 2}`, true},
		{"$json differs", m{"x": m{"$json": m{"a": 1}}}, m{"x": `{"a": 2}`}, false},
		{"$json of no JSON", m{"$json": m{"a": 1}}, `{"a"`, false},
		{"$entries", m{"$entries": m{"$contains": m{"key": m{"$startsWith": "a/"}, "value": 1}}}, m{"b": 2, "a/x": 1}, true},
		{"$entries differs", m{"$entries": m{"$contains": m{"key": m{"$startsWith": "a/"}, "value": 1}}}, m{"b": 1, "a/x": 2}, false},
		{"$entries of a list", m{"$entries": m{"$contains": m{"key": "a"}}}, l{m{"key": "a"}}, false},
		{"$json and more", m{"$json": 1}, `1 2`, false},
		{"$json of a map", m{"$json": m{"a": 1}}, m{"a": 1}, false},
		{"$jwt", m{"$jwt": m{"aud": l{"a"}, "exp": 600, "nbf": 0, "iat": 1000}}, token(`{"aud": ["a"], "iat": 1000, "nbf": 1000, "exp": 1600}`), true},
		{"$jwt without iat", m{"$jwt": m{"exp": 1600}}, token(`{"exp": 1600}`), true},
		{"$jwt differs", m{"x": m{"$jwt": m{"exp": 600}}}, m{"x": token(`{"iat": 1000, "exp": 1601}`)}, false},
		{"$jwt of a list", m{"$jwt": l{}}, token(`[]`), false},
		{"$jwt of another text", m{"$jwt": m{}}, "a.b", false},
		{"$jwt that is not base64url", m{"$jwt": m{}}, "a.b!.c", false},
		{"$jwt of no string", m{"$jwt": m{}}, 1, false},
		{"a long value is cut", m{"a": "x"}, m{"a": strings.Repeat("é", 1000)}, false},

		{"unknown operator", m{"a": m{"$contain": "x"}}, m{"a": "x"}, false},
		{"malformed below $not", m{"$not": m{"$oneOf": "x"}}, "y", false},
	}
}

type namedBool bool

func TestMatch(t *testing.T) {
	var texts strings.Builder
	for _, e := range examples() {
		differences := match.Match(e.expected, e.actual, "it")
		if holds := differences == nil; holds != e.holds {
			t.Errorf("%s: got %v, want holds = %t", e.name, differences, e.holds)
		}
		if !e.holds {
			fmt.Fprintf(&texts, "## %s\n", e.name)
			for _, d := range differences {
				fmt.Fprintln(&texts, d)
			}
		}
	}
	golden.Compare(t, filepath.Join("testdata", "differences.golden"), texts.String())
}

// jsonValue makes random JSON values without keys that begin with "$".
type jsonValue struct{ value any }

func (jsonValue) Generate(r *rand.Rand, size int) reflect.Value {
	return reflect.ValueOf(jsonValue{randomJSON(r, 4)})
}

func randomJSON(r *rand.Rand, depth int) any {
	kinds := 8
	if depth == 0 {
		kinds = 6
	}
	switch r.Intn(kinds) {
	case 0:
		return nil
	case 1:
		return r.Intn(2) == 0
	case 2:
		return r.Int63() - r.Int63()
	case 3:
		return r.NormFloat64() * math.Pow(10, float64(r.Intn(40)-20))
	case 4:
		return json.Number(fmt.Sprintf("%d.%de%d", r.Intn(10), r.Intn(1000), r.Intn(20)))
	case 5:
		return randomText(r)
	case 6:
		list := l{}
		for range r.Intn(4) {
			list = append(list, randomJSON(r, depth-1))
		}
		return list
	default:
		mapping := m{}
		for range r.Intn(4) {
			mapping["k"+randomText(r)] = randomJSON(r, depth-1)
		}
		return mapping
	}
}

func randomText(r *rand.Rand) string {
	letters := []rune("ab.$[]\"é\n\x00/")
	text := make([]rune, r.Intn(5))
	for i := range text {
		text[i] = letters[r.Intn(len(letters))]
	}
	return string(text)
}

func TestMatchHoldsOfItself(t *testing.T) {
	config := &quick.Config{MaxCount: 3000, Rand: rand.New(rand.NewSource(1))}
	itself := func(v jsonValue) bool {
		return match.Match(v.value, v.value, "") == nil &&
			match.Match(m{"$exact": v.value}, v.value, "") == nil &&
			match.Match(m{"$not": v.value}, v.value, "") != nil &&
			match.Equal(v.value, v.value)
	}
	if err := quick.Check(itself, config); err != nil {
		t.Error(err)
	}
}

func TestMatchHoldsAfterJSON(t *testing.T) {
	config := &quick.Config{MaxCount: 1000, Rand: rand.New(rand.NewSource(2))}
	after := func(v jsonValue) bool {
		text, err := json.Marshal(v.value)
		return err == nil && match.Match(m{"$json": v.value}, string(text), "") == nil
	}
	if err := quick.Check(after, config); err != nil {
		t.Error(err)
	}
}

func TestPathsLeadBack(t *testing.T) {
	config := &quick.Config{MaxCount: 2000, Rand: rand.New(rand.NewSource(3))}
	leadsBack := func(seed int64) bool {
		r := rand.New(rand.NewSource(seed))
		key, other := randomText(r), randomText(r)
		path := match.Key(match.Index(match.Key("", key), 1), other)
		got, err := match.Lookup(m{key: l{0, m{other: "found"}}}, path)
		return err == nil && got == "found"
	}
	if err := quick.Check(leadsBack, config); err != nil {
		t.Error(err)
	}
}

func TestLookup(t *testing.T) {
	value := m{"a": m{"b.c": l{"x", m{"d": 1}}, "e": []string{"y"}}}
	tests := []struct {
		path    string
		want    any
		problem string
	}{
		{path: `a["b.c"][1].d`, want: 1},
		{path: `a.e[0]`, want: "y"},
		{path: ``, want: value},
		{path: `a.x.y`, want: match.Absent{}},
		{path: `a[0]`, want: match.Absent{}},
		{path: `a.e[1]`, want: match.Absent{}},
		{path: `a.e.f`, want: match.Absent{}},
		{path: `a.`, problem: "expected a name after the last dot"},
		{path: `.a`, problem: "expected a name"},
		{path: `a["b`, problem: "expected [INDEX]"},
		{path: `a["b"`, problem: `expected ] after "b"`},
		{path: `a[-1]`, problem: "expected [INDEX]"},
		{path: `a[1`, problem: "expected [INDEX]"},
		{path: `a[x]`, problem: "expected [INDEX]"},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			got, err := match.Lookup(value, test.path)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || !strings.HasPrefix(err.Error(), "read path ") {
					t.Errorf("Lookup(%q): got error %v, want one with %q", test.path, err, test.problem)
				}
				return
			}
			if err != nil || !cmp.Equal(got, test.want) {
				t.Errorf("Lookup(%q): got %v, %v, want %v", test.path, got, err, test.want)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	tests := []struct {
		a, b any
		want bool
	}{
		{m{"a": 1}, m{"a": 1.0}, true},
		{m{"a": 1}, m{"a": 1, "b": 2}, false},
		{m{"a": nil}, m{"b": nil}, false},
		{m{"a": 1}, l{1}, false},
		{l{1, m{}}, []any{1, map[string]int{}}, true},
		{l{1}, l{2}, false},
		{l{1}, 1, false},
		{nil, nil, true},
		{nil, match.Absent{}, false},
		{match.Absent{}, match.Absent{}, true},
		{match.Absent{}, nil, false},
		{m{"$oneOf": l{1}}, 1, false},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v and %v", test.a, test.b), func(t *testing.T) {
			if got := match.Equal(test.a, test.b); got != test.want {
				t.Errorf("Equal(%v, %v): got %t, want %t", test.a, test.b, got, test.want)
			}
		})
	}
}

// A hidden value matches what its value matches, and no difference shows it.
func TestHidden(t *testing.T) {
	const value = `{"pin":"1234"}`
	actual := map[string]any{"data": map[string]any{"a": match.Hidden{Value: value}, "list": match.Hidden{Value: []any{"1234"}}}, "b": "shown", "status": map[string]any{"token": match.Hidden{Value: token(`{"sub": "a"}`)}}}
	hidden := func(path, expected string) []match.Difference {
		return []match.Difference{{Path: path, Expected: expected, Actual: match.Redacted}}
	}
	for name, test := range map[string]struct {
		expected any
		want     []match.Difference
	}{
		"equal":     {map[string]any{"data": map[string]any{"a": value}}, nil},
		"not equal": {map[string]any{"data": map[string]any{"a": "1234"}}, hidden("data.a", match.Redacted)},
		"starts":    {map[string]any{"data": map[string]any{"a": map[string]any{"$startsWith": `{"pin`}}}, nil},
		"in JSON":   {map[string]any{"data": map[string]any{"a": map[string]any{"$json": map[string]any{"pin": "1235"}}}}, hidden("data.a", match.Redacted)},
		"token": {
			map[string]any{"status": map[string]any{"token": map[string]any{"$jwt": map[string]any{"sub": "b"}}}},
			[]match.Difference{{Path: "status.token.$jwt.sub", Expected: `"b"`, Actual: `"a"`}},
		},
		"no token": {map[string]any{"data": map[string]any{"a": map[string]any{"$jwt": map[string]any{"sub": "b"}}}}, []match.Difference{{
			Path: "data.a", Expected: `a JSON Web Token with the claims {"sub":"b"}`, Actual: match.Redacted + " (not a JSON Web Token: expected three parts with dots between them)",
		}}},
		"item":   {map[string]any{"data": map[string]any{"list": []any{"1235"}}}, hidden("data.list", match.Redacted)},
		"absent": {map[string]any{"data": map[string]any{"a": map[string]any{"$absent": true}}}, hidden("data.a", "no such field")},
		"null":   {map[string]any{"data": map[string]any{"a": nil}}, hidden("data.a", "null")},
		"entries": {
			map[string]any{"data": map[string]any{"$entries": []any{map[string]any{"key": "a"}}}},
			[]match.Difference{{
				Path: "data.$entries", Expected: `1 item: [{"key":"a"}]`,
				Actual: `2 items: [{"key":"a","value":"(redacted)"},{"key":"list","value":"(redacted)"}]`,
			}},
		},
		"whole": {map[string]any{"data": "x"}, []match.Difference{{Path: "data", Expected: `"x"`, Actual: `{"a":"(redacted)","list":"(redacted)"}`}}},
		"exact": {
			map[string]any{"data": map[string]any{"$exact": map[string]any{"list": []any{"1234"}}}},
			[]match.Difference{{Path: "data.a", Expected: "no such field, because $exact does not list it", Actual: match.Redacted}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := match.Match(test.expected, actual, "")
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	inner, err := match.Lookup(actual, "data.list[0]")
	if err != nil || strings.Contains(match.Matcher{}.Show(inner), "1234") || !match.Equal(inner, "1234") || match.Equal(inner, "1235") {
		t.Errorf("Lookup = %s, %v; want a hidden 1234", match.Matcher{}.Show(inner), err)
	}
	if missing, err := match.Lookup(actual, "data.list[1]"); err != nil || missing != (any)(match.Absent{}) {
		t.Errorf("Lookup = %v, %v; want absent", missing, err)
	}
}

// A value that is hidden in part matches exactly what the value matches.
func TestHiddenMatchesTheSame(t *testing.T) {
	config := &quick.Config{MaxCount: 3000, Rand: rand.New(rand.NewSource(3))}
	same := func(a, b jsonValue, seed int64) bool {
		hidden := hideSome(b.value, rand.New(rand.NewSource(seed)))
		for _, expected := range []any{a.value, b.value, m{"$not": a.value}, m{"$exact": a.value}, m{"$contains": a.value}, m{"$nonEmpty": true}} {
			if (match.Match(expected, b.value, "") == nil) != (match.Match(expected, hidden, "") == nil) {
				return false
			}
		}
		return match.Equal(b.value, hidden)
	}
	if err := quick.Check(same, config); err != nil {
		t.Error(err)
	}
}

// hideSome returns a value with some of its values hidden.
func hideSome(value any, r *rand.Rand) any {
	if r.Intn(4) == 0 {
		return match.Hidden{Value: value}
	}
	switch value := value.(type) {
	case m:
		out := m{}
		for key, inner := range value {
			out[key] = hideSome(inner, r)
		}
		return out
	case l:
		out := l{}
		for _, inner := range value {
			out = append(out, hideSome(inner, r))
		}
		return out
	default:
		return value
	}
}

// Hide gets whole texts, also those that are cut and those that are parts of others.
func TestHide(t *testing.T) {
	secret := strings.Repeat("secret ", 100)
	hiding := match.Matcher{Hide: func(text string) string { return strings.ReplaceAll(text, secret, "HIDDEN") }}
	for _, expected := range []any{
		m{"a": secret}, m{"a": m{"$oneOf": l{secret, "b"}}}, m{"a": m{"$not": m{"$startsWith": secret}}}, m{"a": m{"$exact": secret + "."}},
		m{"a": m{"$contains": secret + "."}}, m{"a": m{"$containsAll": l{secret}}}, m{"a": m{"$json": secret}}, m{"a": m{"$entries": l{secret}}},
		m{"a": m{"$absent": true}}, m{"a": l{secret}}, m{"a": m{"b": secret}}, m{"$exact": m{}},
	} {
		t.Run(fmt.Sprint(expected), func(t *testing.T) {
			actual := m{"a": secret + "!"}
			for _, one := range hiding.Match(expected, actual, "") {
				if text := one.String(); strings.Contains(text, "secret") || !strings.Contains(text, "HIDDEN") {
					t.Errorf("%v: got %s", expected, text)
				}
			}
		})
	}
}

func TestAssumptions(t *testing.T) {
	absent := map[string]any{"$absent": true}
	tests := []struct {
		name     string
		expected any
		want     []string
	}{
		{"proved", map[string]any{"data": map[string]any{"a": "b"}, "other": map[string]any{"$absent": false}}, nil},
		{"absent", map[string]any{"dta": absent}, []string{"dta"}},
		{"null", map[string]any{"dta": nil}, []string{"dta"}},
		{"both absent", map[string]any{"metadata": map[string]any{"lables": absent}}, []string{"metadata", "metadata.lables"}},
		{"one of", map[string]any{"a": map[string]any{"$oneOf": []any{nil, "x"}}}, []string{"a"}},
		{"in one of", map[string]any{"$oneOf": []any{map[string]any{"a": nil}}}, []string{"a written $oneOf[0].a"}},
		{"not of a value", map[string]any{"a": map[string]any{"$not": "b"}}, nil},
		{"below not", map[string]any{"$not": map[string]any{"dta": map[string]any{"a": "b"}}}, []string{"dta written $not.dta", "dta.a written $not.dta.a"}},
		{"exact", map[string]any{"a": map[string]any{"$exact": map[string]any{"b": absent}}}, []string{"a", "a.b written a.$exact.b"}},
		{"item", []any{map[string]any{"a": absent}}, []string{"[0].a"}},
		{"contains", map[string]any{"$contains": map[string]any{"a": absent}}, []string{"[0].a written $contains.a"}},
		{"contains all", map[string]any{"$containsAll": []any{"x", map[string]any{"a": absent}}}, []string{"[0].a written $containsAll[1].a"}},
		{"json", map[string]any{"$not": map[string]any{"$json": map[string]any{"a": "b"}}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, one := range match.Assumptions(test.expected) {
				text := fmt.Sprint(one.Field)
				if fmt.Sprint(one.Written) != text {
					text += " written " + fmt.Sprint(one.Written)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Assumptions (- want, + got):\n%s", diff)
			}
		})
	}
}

func ExampleMatch() {
	expected := map[string]any{"metadata": map[string]any{
		"name": map[string]any{"$oneOf": []any{"a", "b"}},
		"uid":  map[string]any{"$absent": true},
	}}
	actual := map[string]any{"metadata": map[string]any{"name": "c", "namespace": "x"}}
	for _, difference := range match.Match(expected, actual, "object") {
		fmt.Println(difference)
	}
	// Output:
	// object.metadata.name: expected one of "a", "b", actual "c"
}
