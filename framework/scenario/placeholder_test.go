package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplace(t *testing.T) {
	lookup := func(name string) (any, bool) {
		switch name {
		case "id":
			return "at-x-001", true
		case "steps.s.object.metadata.generation":
			return int64(3), true
		}
		return nil, false
	}
	type inner struct {
		Text string
		Keys map[string]any
		List []any
		Ptr  *string
		F    func()
	}
	pointed := "p-$(id)"
	in := inner{
		Text: "a $(id) b", Keys: map[string]any{"$(id)/key": map[string]any{"n": "$(steps.s.object.metadata.generation)"}},
		List: []any{"$(id)", 7, nil, true}, Ptr: &pointed,
	}
	got, err := Replace(in, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"at-x-001/key": map[string]any{"n": int64(3)}}
	if diff := cmp.Diff(want, got.Keys); diff != "" {
		t.Errorf("keys: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]any{"at-x-001", 7, nil, true}, got.List); diff != "" {
		t.Errorf("list: -want +got\n%s", diff)
	}
	if got.Text != "a at-x-001 b" || *got.Ptr != "p-at-x-001" {
		t.Errorf("texts: got %q and %q", got.Text, *got.Ptr)
	}
	if *in.Ptr != "p-$(id)" || in.List[0] != "$(id)" {
		t.Error("the original was changed")
	}
}

func TestReplaceUnknown(t *testing.T) {
	_, err := Replace("x $(steps.none.object)", func(string) (any, bool) { return nil, false })
	if err == nil || !strings.Contains(err.Error(), "$(steps.none.object)") {
		t.Errorf("got error %v, want one that names the placeholder", err)
	}
}

func TestReplaceLiteral(t *testing.T) {
	lookup := func(name string) (any, bool) { return "value", name == "id" }
	for text, want := range map[string]string{
		"$$(id)": "$(id)", "a $$(POD_NAME) $(id)": "a $(POD_NAME) value", "$$$(id)": "$$(id)", "$$": "$$", "$ $(id)": "$ value",
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Replace(map[string]any{text: []any{text}}, lookup)
			if diff := cmp.Diff(map[string]any{want: []any{want}}, got); err != nil || diff != "" {
				t.Errorf("error %v, -want +got\n%s", err, diff)
			}
		})
	}
}
