package document

import (
	"fmt"
	"strings"
	"testing"
)

// TestLocate: the marked character of a value, in each style of YAML.
func TestLocate(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"plain":              "a: object.spec.@x == 1\n",
		"plain in a flow":    "{b: c, a: object.@x}\n",
		"plain, folded":      "a: object.spec\n   .y ==\n\n     @x\nb: 1\n",
		"single quotes":      "a: 'it''s ''quoted'' + @x' # it\n",
		"double quotes":      `a: "say \"ja\" + @x \n"` + "\n",
		"double, folded":     "a: \"one\n  two\n  @x\"\n",
		"literal":            "a: |\n  one &&\n    two ||\n  @x\n",
		"literal with blank": "a: |-\n\n  one\n\n   @x\n",
		"folded":             "a: >-\n  one &&\n  two ||\n  @x\nb: 2\n",
		"folded, more":       "a: > # comment\n  one\n\n    two\n    @x\n",
		"indentation":        "a:\n- b: |2\n     one\n    @x\n",
		"other alphabets":    "ä: ''\na: \"größe ∈ @x\"\n",
		"JSON":               `{"a": "object.@x\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, problems := Parse("a.yaml", []byte(text))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			node := nodes[0].Get("a")
			if node.Kind == KindList {
				node = node.Items[0].Get("b")
			}
			got := strings.Split(node.Raw, "@")
			line := strings.Count(got[0], "\n")
			column := len([]rune(got[0][strings.LastIndex(got[0], "\n")+1:]))
			fileLine, fileColumn := node.Locate(line+1, column+1)
			before, _, _ := strings.Cut(text, "@")
			wantLine, wantColumn := strings.Count(before, "\n")+1, len([]rune(before[strings.LastIndex(before, "\n")+1:]))+1
			if fileLine != wantLine || fileColumn != wantColumn {
				t.Errorf("%q of %q: got %d:%d, want %d:%d", node.Raw, text, fileLine, fileColumn, wantLine, wantColumn)
			}
		})
	}
}

// TestLocateNothing: a character that the text does not have is at the text itself.
func TestLocateNothing(t *testing.T) {
	t.Parallel()
	nodes, _ := Parse("a.yaml", []byte("b: 1\na: xyz\nc: 7\nd: \"\\t so\"\ne: \"\\u0041 so\"\ns: so\n"))
	for _, position := range [][2]int{{0, 0}, {1, 99}, {2, 1}, {-1, 3}, {1, 0}} {
		t.Run(fmt.Sprint(position), func(t *testing.T) {
			if line, column := nodes[0].Get("a").Locate(position[0], position[1]); line != 2 || column != 4 {
				t.Errorf("%v: got %d:%d, want 2:4", position, line, column)
			}
		})
	}
	if line, column := nodes[0].Get("c").Locate(1, 1); line != 3 || column != 4 {
		t.Errorf("of a number: got %d:%d, want 3:4", line, column)
	}
	for after, want := range map[string]int{"d": 4, "e": 5} {
		t.Run(after, func(t *testing.T) {
			if line, column := nodes[0].Get(after).Locate(1, strings.Index(nodes[0].Get(after).Raw, "so")+1); line != want || column != 4 {
				t.Errorf("after an escape: got %d:%d, want %d:4", line, column, want)
			}
		})
	}
}
