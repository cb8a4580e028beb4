package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

// page returns the page of a report.
func page(t *testing.T, r report.Report) string {
	t.Helper()
	var text strings.Builder
	if err := report.WriteHTML(&text, r); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// read reads a report: hostile.json has a report in which every text is markup, and a script that calls hacked().
func read(t *testing.T, name string) report.Report {
	t.Helper()
	r, err := report.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// body returns a page without its style and script.
func body(text string) string {
	for _, part := range []string{`(?s)<style>.*?</style>`, `(?s)<script>.*?</script>`, `content="default-src [^"]*"`} {
		text = regexp.MustCompile(part).ReplaceAllString(text, "")
	}
	return text
}

// The pages of the reports of all versions.
func TestPages(t *testing.T) {
	files, err := filepath.Glob("testdata/versions/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v; want at least 2 files", files, err)
	}
	for _, file := range files {
		golden.Compare(t, filepath.Join("testdata", "pages", strings.TrimSuffix(filepath.Base(file), ".json")+".html"), body(page(t, read(t, file))))
	}
}

// The page of several API servers has a cell for each requirement and server, also for one that did not run it.
func TestMatrixPage(t *testing.T) {
	first := report.New(framework.TargetInfo{Kind: "envtest", ServerVersion: "v1.37.2"})
	first.Outcomes = []report.Outcome{
		{Name: "a.same", Area: "a", Level: framework.Must, Verdict: framework.Pass, Requirement: "It is the same."},
		{Name: "a.differs", Area: "a", Level: framework.Must, Verdict: framework.Pass, Requirement: "It differs."},
		{Name: "b.newer", Area: "b", Level: framework.Should, Verdict: framework.Pass, Requirement: "It is new."},
	}
	second := report.New(framework.TargetInfo{Kind: "kubeconfig", ServerVersion: "v1.37.0-mine"})
	second.Implementation = &framework.Implementation{Project: "Mine <b>", Version: "2"}
	second.Outcomes = []report.Outcome{
		{Name: "a.same", Area: "a", Level: framework.Must, Verdict: framework.Pass, Requirement: "It is the same."},
		{Name: "a.differs", Area: "a", Level: framework.Must, Verdict: framework.Fail, Requirement: "It differs.", Reason: "got <script>\nmore"},
	}
	first.Summary, second.Summary = report.Count(first.Outcomes), report.Count(second.Outcomes)
	var text strings.Builder
	claim := report.Claim{Profile: "webhooks", Kubernetes: "1.37", Verdict: report.NotConformant, Requirements: 2, Passed: 1, Failed: []string{"a.differs"}}
	err := report.NewMatrix([]report.Server{{File: "one", Report: first}, {File: "two", Report: second, Claims: []report.Claim{claim}}}).WriteHTML(&text)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/pages/matrix.html", body(text.String()))
	if strings.Contains(text.String(), "got <script>") || strings.Contains(text.String(), "Mine <b>") {
		t.Error("the text of a report is markup")
	}
}

// tags counts the elements and the names of the attributes of a page.
func tags(t *testing.T, text string) (elements, attributes map[string]int) {
	t.Helper()
	elements, attributes = map[string]int{}, map[string]int{}
	for tokens := html.NewTokenizer(strings.NewReader(text)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return elements, attributes
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			elements[token.Data]++
			for _, attribute := range token.Attr {
				attributes[attribute.Key]++
				if attribute.Key == "href" && !strings.HasPrefix(attribute.Val, "#") && !strings.HasPrefix(attribute.Val, "https://") && attribute.Val != "data:," {
					t.Errorf("<%s> leads to %q", token.Data, attribute.Val)
				}
			}
		}
	}
}

// Text of servers and scenarios is never markup. That it is not executed either is tested in a browser:
// hack/browser.
func TestTextIsData(t *testing.T) {
	text := page(t, read(t, "testdata/pages/hostile.json"))
	elements, attributes := tags(t, text)
	for _, name := range []string{"script", "style"} {
		if elements[name] != 1 {
			t.Errorf("the page has %d elements <%s>, want its own", elements[name], name)
		}
	}
	for _, name := range []string{"img", "svg", "textarea", "iframe", "object"} {
		if elements[name] != 0 {
			t.Errorf("the page has <%s>", name)
		}
	}
	for _, name := range []string{"onerror", "onload", "onclick", "style", "src"} {
		if attributes[name] != 0 {
			t.Errorf("the page has the attribute %s", name)
		}
	}
	if strings.Contains(text, "ZgotmplZ") {
		t.Error("the page has a link that html/template had to replace")
	}
	if at := strings.IndexAny(text, "\u202e\x00\x1b"); at >= 0 {
		t.Errorf("the page has %q", text[at:at+3])
	}
	if !strings.Contains(text, "&lt;script&gt;hacked()") {
		t.Error("the page does not show the text")
	}
}

// The page loads nothing.
func TestPageLoadsNothing(t *testing.T) {
	text := page(t, read(t, "testdata/pages/hostile.json"))
	if !strings.Contains(text, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; img-src data:;`) {
		t.Error("the page has no Content-Security-Policy, or another one")
	}
	own := regexp.MustCompile(`(?s)<style>(.*)</style>|<script>(.*)</script>`)
	for _, one := range own.FindAllString(text, -1) {
		for _, forbidden := range []string{"url(", "@import", "http:", "https:", "fetch(", "import(", "eval(", "innerHTML"} {
			if strings.Contains(one, forbidden) {
				t.Errorf("the page's own style or script has %s", forbidden)
			}
		}
	}
}

// The calls of plugins that did nothing are left out, unless one is the first that diverges.
func TestIdlePlugins(t *testing.T) {
	r := report.New(framework.TargetInfo{})
	r.Outcomes = []report.Outcome{{Name: "a", Verdict: framework.Fail, Evidence: &report.Evidence{Timeline: []report.TimelineEntry{
		{Phase: "mutating", Plugin: "Idle", Observed: true, Idle: true, Answer: "nothing"},
		{Phase: "mutating", Plugin: "Changes", Observed: true, Answer: "changed data"},
		{Phase: "mutating", Plugin: "Diverges", Observed: true, Idle: true, Divergent: true, Answer: "nothing"},
	}}}}
	var got []string
	for _, found := range regexp.MustCompile(`plugin <b>(\w+)</b>`).FindAllStringSubmatch(page(t, r), -1) {
		got = append(got, found[1])
	}
	if want := "Changes Diverges"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// The page of 2,000 failures has at most 3 MiB: it has the evidence of 150.
func TestSize(t *testing.T) {
	r := read(t, "testdata/versions/2026-11-calls.json")
	failed := r.Outcomes[slices.IndexFunc(r.Outcomes, func(o report.Outcome) bool { return o.Verdict == framework.Fail && o.Evidence != nil })]
	r.Outcomes = slices.Repeat([]report.Outcome{failed}, 2000)
	text := page(t, r)
	if left := strings.Count(text, "The evidence is in report.json."); len(text) > 3<<20 || len(text) < 1<<20 || left != 1850 {
		t.Errorf("the page has %d bytes and leaves out the evidence of %d; want between 1 MiB and 3 MiB, and 1850", len(text), left)
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	r := read(t, "testdata/pages/hostile.json")
	if err := report.SaveHTML(dir, r); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, report.HTMLFile)); err != nil || string(got) != page(t, r) {
		t.Errorf("got %d bytes, %v; want what Write writes", len(got), err)
	}
	if info, err := os.Stat(filepath.Join(dir, report.HTMLFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want mode 0600", info, err)
	}
	if err := report.SaveHTML(filepath.Join(dir, report.HTMLFile), r); err == nil || !strings.Contains(err.Error(), "save report ") {
		t.Errorf("got %v, want an error", err)
	}
	if err := report.WriteHTML(fullDisk{}, r); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}
