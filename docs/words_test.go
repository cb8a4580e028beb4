package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownWord is a word that has one meaning in this repository.
type ownWord struct {
	// identifier matches declared identifiers with the word.
	identifier *regexp.Regexp
	// folders are the only ones that declare such identifiers.
	folders []string
	// meaning is what the word means, or what to write instead.
	meaning string
}

// ownWords returns the words with one meaning.
func ownWords() []ownWord {
	return []ownWord{
		{regexp.MustCompile(`(?i)upstream`), []string{"framework/hook/", "internal/apiserver/install/"}, "upstream is the webhook behind a Hook"},
		{regexp.MustCompile(`(?i)^places?$`), nil, "write position, field path, folder or index"},
		{regexp.MustCompile(`^Records?$`), []string{"framework/hook/", "internal/target/", "internal/apiserver/sandbox.go", "internal/kubeapiserver/", "suites/contract/internal/check/", "internal/engine/", "suites/conformance/internal/suitetest/"}, "a record is the call of a plugin, and Hooks record"},
		{regexp.MustCompile(`(?i)shipped`), []string{"internal/shipped/", "internal/engine/"}, "shipped is as the project ships it"},
	}
}

// vague returns phrases that messages, comments and docs do not have, and what to write instead.
func vague() map[*regexp.Regexp]string {
	return map[*regexp.Regexp]string{
		regexp.MustCompile(`\b[aA] text\b`):         "a string",
		regexp.MustCompile(`\b[aA] mapping\b`):      "a map",
		regexp.MustCompile(`(?i)\bthose of\b`):      "the noun again",
		regexp.MustCompile(`(?i)\bof (ours|yours)`): "our or your",
	}
}

// misused returns what is wrong in a file, by ownWords and vague.
func misused(name string, content []byte) ([]string, error) {
	var found []string
	if strings.HasSuffix(name, ".go") {
		identifiers, err := declared(name, content)
		if err != nil {
			return nil, err
		}
		for _, identifier := range identifiers {
			for _, word := range ownWords() {
				here := func(folder string) bool { return strings.HasPrefix(name, folder) }
				if word.identifier.MatchString(identifier) && !slices.ContainsFunc(word.folders, here) {
					found = append(found, fmt.Sprintf("%s: %s: %s", name, identifier, word.meaning))
				}
			}
		}
	}
	for phrase, instead := range vague() {
		for _, at := range phrase.FindAllIndex(content, -1) {
			line := 1 + strings.Count(string(content[:at[0]]), "\n")
			found = append(found, fmt.Sprintf("%s:%d: %q: write %s", name, line, content[at[0]:at[1]], instead))
		}
	}
	slices.Sort(found)
	return found, nil
}

// declared returns the names of the functions, types, fields, parameters and variables of a file.
func declared(name string, content []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	note := func(names ...*ast.Ident) {
		for _, name := range names {
			found = append(found, name.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			note(n.Name)
		case *ast.TypeSpec:
			note(n.Name)
		case *ast.ValueSpec:
			note(n.Names...)
		case *ast.Field:
			note(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					note(name)
				}
			}
		}
		return true
	})
	return found, nil
}

// TestWords reads each Go file, manual and expected output. Decisions in docs/adr keep the words of
// their time.
func TestWords(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "*.go", "*.md", "*.golden").Output()
	if err != nil {
		t.Skipf("the files of the repository are not known: %v", err)
	}
	checked := 0
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "docs/adr/") || name == "docs/words_test.go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		found, err := misused(name, content)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range found {
			t.Error(one)
		}
		checked++
	}
	if checked < 500 {
		t.Errorf("checked %d files, want all of the repository", checked)
	}
}

// TestWordsAreFound shows that TestWords can fail.
func TestWordsAreFound(t *testing.T) {
	for name, source := range map[string]string{
		"internal/engine/a.go":    "package a\n\nfunc upstream() {}",
		"internal/report/a.go":    "package a\n\ntype Place struct{}",
		"internal/providers/a.go": "package a\n\nfunc f() { shipped := 1; _ = shipped }",
		"internal/judge/a.go":     "package a\n\ntype Record struct{}",
		"docs/a.md":               "It is a mapping.",
		"docs/b.md":               "Labels are those of the object.",
		"x/a.golden":              "expected a text",
	} {
		t.Run(name, func(t *testing.T) {
			if found, err := misused(name, []byte(source)); err != nil || len(found) != 1 {
				t.Errorf("got %q and %v, want one finding", found, err)
			}
		})
	}
	if found, err := misused("framework/hook/a.go", []byte("package hook\n\ntype Upstream struct{} // a string")); err != nil || len(found) > 0 {
		t.Errorf("got %q and %v, want none", found, err)
	}
}
