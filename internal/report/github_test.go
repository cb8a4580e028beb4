package report_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

func fileOf(o report.Outcome) string { return o.File }

func TestGitHub(t *testing.T) {
	r := everything()
	r.Strict = false
	for name, write := range map[string]func(*strings.Builder) error{
		"annotations.txt": func(w *strings.Builder) error { return report.WriteAnnotations(w, r, fileOf) },
		"summary.md":      func(w *strings.Builder) error { return report.WriteMarkdown(w, r) },
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			if err := write(&text); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name), text.String())
		})
	}
	if err := report.WriteAnnotations(fullDisk{}, r, fileOf); !errors.Is(err, errFull) {
		t.Errorf("annotations: got %v", err)
	}
	if err := report.WriteMarkdown(fullDisk{}, r); !errors.Is(err, errFull) {
		t.Errorf("summary: got %v", err)
	}
}

// Each outcome has the annotation that its level and the options of the run ask for.
func TestAnnotationKinds(t *testing.T) {
	type options struct{ strict, failOnUnsupported bool }
	for _, test := range []struct {
		outcome report.Outcome
		options options
		want    string
	}{
		{report.Outcome{Level: framework.Must, Verdict: framework.Fail}, options{}, "error"},
		{report.Outcome{Level: framework.Should, Verdict: framework.Fail}, options{}, "warning"},
		{report.Outcome{Level: framework.Should, Verdict: framework.Fail}, options{strict: true}, "error"},
		{report.Outcome{Level: framework.May, Verdict: framework.Fail}, options{strict: true}, "notice"},
		{report.Outcome{Level: framework.May, Verdict: framework.Errored, Mistake: true}, options{}, "error"},
		{report.Outcome{Level: framework.Must, Verdict: framework.Inconclusive}, options{}, "error"},
		{report.Outcome{Level: framework.Must, Verdict: "nonsense"}, options{}, "error"},
		{report.Outcome{Level: framework.Must, Verdict: framework.Unsupported}, options{}, ""},
		{report.Outcome{Level: framework.May, Verdict: framework.Unsupported}, options{failOnUnsupported: true}, "error"},
		{report.Outcome{Level: framework.Must, Verdict: framework.Fail, KnownFailing: "k"}, options{}, ""},
		{report.Outcome{Level: framework.Must, Verdict: framework.Errored, NotReached: true}, options{}, ""},
		{report.Outcome{Level: framework.Must, Verdict: framework.Pass}, options{}, ""},
		{report.Outcome{Level: framework.Must, Verdict: framework.Skipped}, options{}, ""},
	} {
		t.Run(fmt.Sprintf("%s %s", test.outcome.Level, test.outcome.Verdict), func(t *testing.T) {
			var text strings.Builder
			r := report.Report{Strict: test.options.strict, FailOnUnsupported: test.options.failOnUnsupported, Outcomes: []report.Outcome{test.outcome}}
			if err := report.WriteAnnotations(&text, r, fileOf); err != nil {
				t.Fatal(err)
			}
			kind, _, _ := strings.Cut(strings.TrimPrefix(text.String(), "::"), " ")
			if kind != test.want {
				t.Errorf("%+v with %+v: got %q, want %q", test.outcome, test.options, text.String(), test.want)
			}
		})
	}
}

// hostileOutcome tries to get out of a command and out of Markdown.
func hostileOutcome() report.Outcome {
	const hostile = "x::error::a\n::add-mask::b\r\n::stop-commands::c\u2028::d%0A::e ``` ````\n# heading\n<script>f</script> | [g](javascript:h) @owner ##[error]i,file=j::k"
	return report.Outcome{
		Name: hostile, Area: hostile, Level: framework.Must, Verdict: framework.Fail, Requirement: hostile, Source: []string{hostile},
		File: hostile, Line: 3, Reason: hostile, Evidence: &report.Evidence{
			Response: hostile, Mismatches: []report.Mismatch{{Path: hostile, Expected: hostile, Actual: hostile}},
		},
	}
}

// Text of a server is part of one annotation, of which it cannot change a property.
func TestAnnotationsAreNotInjected(t *testing.T) {
	var text strings.Builder
	if err := report.WriteAnnotations(&text, report.Report{Outcomes: []report.Outcome{hostileOutcome()}}, fileOf); err != nil {
		t.Fatal(err)
	}
	if lines := strings.FieldsFunc(text.String(), func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }); len(lines) != 1 {
		t.Errorf("got %d lines:\n%s", len(lines), text.String())
	}
	form := regexp.MustCompile(`^::error file=([^,:]*),line=3,title=([^,:]*)::[^\n]*\n$`)
	if !form.MatchString(text.String()) {
		t.Errorf("got %q, want it to match %s", text.String(), form)
	}
	if strings.Contains(text.String(), "##[") {
		t.Errorf("an old command is not separated: %q", text.String())
	}
	if strings.Contains(text.String(), "%0A::e") {
		t.Errorf("an escape of the server is not escaped: %q", text.String())
	}
}

// Text of a server is only in code in a summary.
func TestMarkdownIsNotInjected(t *testing.T) {
	var text strings.Builder
	r := report.New(framework.TargetInfo{Kind: "`kind`\n# h", ServerVersion: "| v |"})
	r.Outcomes, r.Incomplete = []report.Outcome{hostileOutcome()}, hostileOutcome().Name
	if err := report.WriteMarkdown(&text, r); err != nil {
		t.Fatal(err)
	}
	// Without code there are our own words only.
	outside := regexp.MustCompile("(?ms)^(`{3,})text$.*?^`{3,}$").ReplaceAllStringFunc(text.String(), func(block string) string {
		fence := block[:strings.Index(block, "text")]
		if strings.Count(block, "\n"+fence) != 1 || strings.Contains(strings.TrimSuffix(block, fence)[len(fence):], fence) {
			t.Errorf("the fence %s is in the code:\n%s", fence, block)
		}
		return "BLOCK"
	})
	span := regexp.MustCompile("`+ [^\n]*? `+")
	var rest []string
	for line := range strings.Lines(outside) {
		rest = append(rest, strings.TrimSpace(span.ReplaceAllString(line, "SPAN")))
	}
	for _, forbidden := range []string{"<script", "javascript", "@owner", "heading"} {
		for _, line := range rest {
			if strings.Contains(strings.Join(strings.Split(line, "SPAN"), ""), forbidden) {
				t.Errorf("%s is outside of code: %q", forbidden, line)
			}
		}
	}
}

// A summary has at most 1 MiB, and says what is left out.
func TestMarkdownIsBounded(t *testing.T) {
	var r report.Report
	for range 3000 {
		one := hostileOutcome()
		one.Reason = strings.Repeat("long ", 100)
		r.Outcomes = append(r.Outcomes, one)
	}
	var text strings.Builder
	if err := report.WriteMarkdown(&text, r); err != nil || text.Len() > 1<<20 || !regexp.MustCompile(`\nand \d+ more: see the report\n$`).MatchString(text.String()) {
		t.Errorf("got %d bytes, %v; the end is %q", text.Len(), err, text.String()[max(0, text.Len()-200):])
	}
	r.Outcomes = nil
	text.Reset()
	if err := report.WriteMarkdown(&text, r); err != nil || !strings.HasPrefix(text.String(), "## admissiontest: NOTHING SELECTED\n") {
		t.Errorf("got %q, %v", text.String(), err)
	}
	if diff := cmp.Diff(0, strings.Count(text.String(), "###")); diff != "" {
		t.Error(diff)
	}
}
