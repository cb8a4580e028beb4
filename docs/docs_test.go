// Package docs_test holds the manuals to what the code knows.
package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
)

func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// missing returns the words that a string does not have between backquotes, alone
// or as the beginning of what stands there.
func missing(text string, words []string) []string {
	var out []string
	for _, word := range words {
		if !strings.Contains(text, "`"+word+"`") && !strings.Contains(text, "`{"+word+":") {
			out = append(out, word)
		}
	}
	return out
}

// vocabulary is every word of the format: fields, faults, operators, verdicts.
func vocabulary() []string {
	words := append([]string{"json", "merge", "strategic", "gone"}, match.Operators()...)
	for _, fault := range hook.Faults() {
		words = append(words, string(fault))
	}
	for _, verdict := range framework.Verdicts() {
		words = append(words, string(verdict))
	}
	for _, level := range framework.Levels() {
		words = append(words, string(level))
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[scenario.Spec](), reflect.TypeFor[scenario.Server](), reflect.TypeFor[scenario.Step](),
		reflect.TypeFor[scenario.Expectation](), reflect.TypeFor[scenario.Calls](), reflect.TypeFor[scenario.Call](),
		reflect.TypeFor[hook.Reply](), reflect.TypeFor[framework.User](), reflect.TypeFor[hook.HTTP](),
	} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				words = append(words, name)
			}
		}
	}
	return words
}

func TestManualNamesEverything(t *testing.T) {
	for _, word := range missing(manual(t), vocabulary()) {
		t.Errorf("docs/scenarios.md does not explain %q", word)
	}
	if got := missing("`known` and `{$operator: a}`", []string{"known", "$operator", "unknown"}); len(got) != 1 {
		t.Errorf("missing(...) = %q, want one word", got)
	}
}

// Every whole scenario of the manual is one, and so is every fragment within it.
func TestManualExamplesLoad(t *testing.T) {
	blocks := strings.Split(manual(t), "```yaml\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("found %d examples, want all of them", len(blocks))
	}
	whole, _, _ := strings.Cut(blocks[0], "```")
	before, _, _ := strings.Cut(whole, "  hooks:\n")
	_, after, _ := strings.Cut(whole, "  when:\n")
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if section, fragment, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(section, "# ") {
			fragment = "    " + strings.ReplaceAll(strings.TrimSpace(fragment), "\n", "\n    ")
			text = before + "  " + strings.TrimPrefix(section, "# ") + ":\n" + fragment + "\n  when:\n" + after
		}
		got, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"example/example.yaml": {Data: []byte(text)}}})
		if err != nil || len(got) != 1 {
			t.Errorf("example %d: got %d scenarios, %v:\n%s", i+1, len(got), err, text)
		}
	}
}

// TestExamplesLoad: the scenarios of the examples, which are modules with slow tests of their own, can be loaded.
func TestExamplesLoad(t *testing.T) {
	for _, example := range []string{"plugin", "webhook"} {
		t.Run(example, func(t *testing.T) {
			scenarios, err := scenario.Load(scenario.LoadOptions{AnyInstalled: true}, filepath.Join("..", "examples", example, "scenarios"))
			if err != nil || len(scenarios) == 0 {
				t.Errorf("got %d scenarios and error %v", len(scenarios), err)
			}
		})
	}
}
