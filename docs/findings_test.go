package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// incomplete returns what the record of an entry of findings.md lacks, and which commands name something that does not exist.
func incomplete(entry string) []string {
	var wrong []string
	for line, want := range map[string]string{
		"Since": `\S.*`, "Last seen": `\S.*, 20\d\d-\d\d-\d\d( \(.+\))?`, "Reported": `\S.*`,
		"Shown by": "(`[^`]+`( \\(.+\\))?|nothing here: \\S.*)(\n- Shown by: `.*)*",
	} {
		if n := len(regexp.MustCompile(`(?m)^- `+line+`: `+want+`$`).FindAllString(entry, -1)); n != 1 {
			wrong = append(wrong, fmt.Sprintf("got %d times a line %q; want 1 that matches %s", n, line, want))
		}
	}
	if strings.Contains(entry, "\n- Reported: not reported\n") && !regexp.MustCompile(`\n- (Expected: |Gone in: v)`).MatchString(entry) {
		wrong = append(wrong, "it is not reported, and has no line Expected, which an issue needs")
	}
	for _, line := range regexp.MustCompile("(?m)^- Shown by: `([^`]+)`").FindAllStringSubmatch(entry, -1) {
		part := regexp.MustCompile(`^(?:bin/admissiontest run ([^. ]+)(\.\S+)|(?:cd (\S+) && )?go test (?:-modfile=\S+ )?-run '(\w+)(?:/(.+)/(.+)|/(.+)\$)?' (\S+))$`).FindStringSubmatch(line[1])
		if part == nil {
			wrong = append(wrong, line[1]+": hack/findings cannot run such a command")
			continue
		}
		folder := filepath.Join("..", part[3], part[8])
		exists := map[string]string{filepath.Join(folder, "*_test.go"): "func " + part[4] + "(t *testing.T) {\n"}
		for _, plugin := range regexp.MustCompile(`\w+`).FindAllString(part[5], -1) {
			exists[filepath.Join(folder, "testdata", "subjects", plugin+".yaml")] = "- rule: " + part[6] + "\n"
		}
		if part[7] != "" {
			exists[filepath.Join(folder, "testdata", "script", part[7]+".txtar")] = ""
		}
		if part[1] != "" {
			exists = map[string]string{filepath.Join("..", "scenarios", part[1], "*"): "\n  name: " + part[1] + part[2] + "\n"}
		}
		for files, text := range exists {
			if !found(files, text) && !found(filepath.Join(files, "*"), text) {
				wrong = append(wrong, fmt.Sprintf("%s: no file %s has %q", line[1], files, text))
			}
		}
	}
	return wrong
}

// found reports whether one of the files that a pattern matches has this text.
func found(pattern, text string) bool {
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}

func TestFindings(t *testing.T) {
	text, err := os.ReadFile("findings.md")
	entries := strings.Split(string(text), "\n## ")[1:]
	if err != nil || len(entries) < 50 {
		t.Errorf("found %d entries, %v; want all", len(entries), err)
	}
	for _, entry := range entries {
		for _, wrong := range incomplete(entry) {
			heading, _, _ := strings.Cut(entry, "\n")
			t.Errorf("%s: %s", heading, wrong)
		}
	}
	good := entries[0] // it needs all lines, and shows below that TestFindings can fail
	for _, change := range [][2]string{
		{"Since: v", "Until: v"}, {", 2026-", ", "}, {"- Reported: ", "- Reports: "}, {"- Expected: ", "- Wanted: "},
		{"`cd reference", "cd reference"}, {"go test", "go run"}, {"TestPlugins", "TestNothing"}, {"ServiceAccount$", "AlwaysDeny$"}, {"/E1'", "/R3'"},
		{"cd reference && go test -run 'TestPlugins/ServiceAccount$/E1' .", "bin/admissiontest run vap.nothing"},
	} {
		if wrong := strings.Replace(good, change[0], change[1], 1); wrong == good || len(incomplete(wrong)) != 1 {
			t.Errorf("%q for %q: got %q, want one complaint:\n%s", change[1], change[0], incomplete(wrong), wrong)
		}
	}
}
