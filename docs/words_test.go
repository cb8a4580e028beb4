package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// vague returns phrases that messages, comments and docs do not have, and what to write instead.
func vague() map[*regexp.Regexp]string {
	return map[*regexp.Regexp]string{
		regexp.MustCompile(`\b[aA] text\b`):         "a string",
		regexp.MustCompile(`\b[aA] mapping\b`):      "a map",
		regexp.MustCompile(`(?i)\bthose of\b`):      "the noun again",
		regexp.MustCompile(`(?i)\bof (ours|yours)`): "our or your",
	}
}

// misused returns the vague phrases of a file.
func misused(name, content string) []string {
	var found []string
	for phrase, instead := range vague() {
		for _, at := range phrase.FindAllStringIndex(content, -1) {
			line := 1 + strings.Count(content[:at[0]], "\n")
			found = append(found, fmt.Sprintf("%s:%d: %q: write %s", name, line, content[at[0]:at[1]], instead))
		}
	}
	return found
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
		for _, one := range misused(name, string(content)) {
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
	for text, want := range map[string]int{"It is a mapping.": 1, "Labels are those of the object.": 1, "expected a text": 1, "a friend of ours": 1, "a string of our object": 0} {
		if found := misused("docs/a.md", text); len(found) != want {
			t.Errorf("%q: got %q, want %d findings", text, found, want)
		}
	}
}
