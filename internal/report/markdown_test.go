package report_test

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

func TestMarkdown(t *testing.T) {
	r := everything()
	r.Strict = false
	var text strings.Builder
	if err := report.WriteMarkdown(&text, r); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "summary.md"), text.String())
	if err := report.WriteMarkdown(fullDisk{}, r); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

// hostileOutcome tries to get out of Markdown.
func hostileOutcome() report.Outcome {
	const hostile = "x::error::a\n::add-mask::b\r\n::stop-commands::c\u2028::d%0A::e ``` ````\n# heading\n<script>f</script> | [g](javascript:h) @owner ##[error]i,file=j::k"
	return report.Outcome{
		Name: hostile, Area: hostile, Level: framework.Must, Verdict: framework.Fail, Requirement: hostile, Source: []string{hostile},
		File: hostile, Line: 3, Reason: hostile, Evidence: &report.Evidence{
			Response: hostile, Mismatches: []report.Mismatch{{Path: hostile, Expected: hostile, Actual: hostile}},
		},
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
	block := regexp.MustCompile("(?s)^## admissiontest: FAIL\n\n(`{3,})text\n(.*)\n(`{3,})\n$").FindStringSubmatch(text.String())
	if block == nil || block[1] != block[3] || strings.Contains(block[2], block[1]) {
		t.Errorf("got %q; want one code block, whose fence is not in it", text.String())
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
	if err := report.WriteMarkdown(&text, r); err != nil || text.Len() > 1<<20 || !strings.HasSuffix(text.String(), "\nand more: see the report\n") {
		t.Errorf("got %d bytes, %v; the end is %q", text.Len(), err, text.String()[max(0, text.Len()-200):])
	}
	r.Outcomes = nil
	text.Reset()
	if err := report.WriteMarkdown(&text, r); err != nil || !strings.HasPrefix(text.String(), "## admissiontest: NOTHING SELECTED\n") {
		t.Errorf("got %q, %v", text.String(), err)
	}
}
