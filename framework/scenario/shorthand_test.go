package scenario

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShortForms(t *testing.T) {
	for data, want := range map[string]Expectation{
		`{"calls": ["a", {"webhook": "b", "phase": "mutating"}]}`: {Calls: &Calls{InOrder: []Call{{Webhook: "a"}, {Webhook: "b", Phase: "mutating"}}}},
		`{"calls": []}`: {Calls: &Calls{InOrder: []Call{}}},
		`{"calls": {"include": ["a"], "exclude": ["b"]}}`: {Calls: &Calls{Include: []Call{{Webhook: "a"}}, Exclude: []string{"b"}}},
		`{"code": 409, "reason": ["A", "B"]}`:             {Code: OneOrMore[int]{409}, Reason: OneOrMore[string]{"A", "B"}},
	} {
		var got Expectation
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", data, diff)
		}
		written, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var again Expectation
		if err := json.Unmarshal(written, &again); err != nil {
			t.Errorf("%s, as written: %v", written, err)
		}
		if diff := cmp.Diff(got, again, cmp.Transformer("empty", func(c Calls) []Call { return append([]Call{}, c.InOrder...) })); diff != "" {
			t.Errorf("%s, written and read again (-want +got)\n%s", data, diff)
		}
	}
	for _, data := range []string{`{"calls": 1}`, `{"calls": {"inorder2": []}}`, `{"calls": [{"webhok": "a"}]}`, `{"code": "a"}`, `{"code": [1, "a"]}`, `{"calls": [1]}`} {
		var got Expectation
		if err := json.Unmarshal([]byte(data), &got); err == nil {
			t.Errorf("%s was read as %+v, want an error", data, got)
		}
	}
}
