package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/admissiontest/admissiontest/internal/report"
)

// program returns the path of the browser. Without one it skips the test, or fails it if
// ADMISSIONTEST_BROWSER is set.
func program(t testing.TB) string {
	t.Helper()
	named := os.Getenv("ADMISSIONTEST_BROWSER")
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if named != "" {
		names = append([]string{named}, names...)
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	why := fmt.Sprintf("this test needs Chromium; looked for %s (apt-get install chromium, or set ADMISSIONTEST_BROWSER)", strings.Join(names, ", "))
	if named != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// tab is a page in a browser. What is wrong with it, requests included, is in problems.
type tab struct {
	context.Context
	testing.TB

	mu       sync.Mutex
	problems []string
}

// newTab starts a browser whose window has a size.
func newTab(t testing.TB, width, height int) *tab {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program(t)), chromedp.WindowSize(width, height), chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	limited, stop := context.WithTimeout(context.Background(), limit) // a dialog would block the page for ever
	t.Cleanup(stop)
	allocated, cancel := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	b := &tab{Context: ctx, TB: t}
	if err := chromedp.Listen(ctx, b.watch); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	b.do(chromedp.EmulateViewport(int64(width), int64(height)))
	return b
}

// watch notes everything that a page must not do.
func (b *tab) watch(event any) {
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.problem("console.%s", event.Type)
	case *runtime.EventExceptionThrown:
		b.problem("exception: %s", event.ExceptionDetails.Text+" "+describe(event.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		b.problem("log: %s %s", event.Entry.Level, event.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		b.problem("dialog: %s", event.Message)
	case *network.EventRequestWillBeSent:
		if at := event.Request.URL; (event.Type != network.ResourceTypeDocument || !strings.HasPrefix(at, "file:///")) && at != "data:," { // the icon
			b.problem("request: %s %s", event.Type, at)
		}
	}
}

func (b *tab) problem(format string, arguments ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, arguments...))
}

// seen returns the problems so far. The browser has sent all events of what was done before.
func (b *tab) seen() []string {
	evaluate[int](b, "0")
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// clean fails the test if there were problems.
func (b *tab) clean() {
	b.Helper()
	for _, problem := range b.seen() {
		b.Errorf("the page is not clean: %s", problem)
	}
}

// do carries out actions.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.Fatal(err)
	}
}

// click clicks on an element.
func (b *tab) click(selector string) {
	b.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// keys types a string into an element.
func (b *tab) keys(selector, text string) {
	b.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// call carries out a command of the protocol of the browser.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	result, err := chromedp.Call(b, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return result
}

// open opens a string as a page, at a fragment of its URL, and returns the URL without the fragment.
func (b *tab) open(text, fragment string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	at := (&url.URL{Scheme: "file", Path: file}).String()
	b.do(chromedp.Navigate(at + fragment))
	return at
}

// write returns the page of a report.
func write(t testing.TB, r report.Report) string {
	t.Helper()
	var text strings.Builder
	if err := report.WriteHTML(&text, r); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// evaluate returns the value of an expression.
func evaluate[T any](b *tab, expression string) T {
	b.Helper()
	value, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// await waits until an expression is true: the browser carries out navigation and scrolling later.
func (b *tab) await(what, expression string) {
	b.Helper()
	if _, err := chromedp.Run(b, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		b.Errorf("%s: %v: %s", what, err, expression)
	}
}

// patience limits the wait for something that the browser does in its own time, limit a whole test.
const (
	patience = 20 * time.Second
	limit    = 2 * time.Minute
)

// shown returns the names of the outcomes that are shown.
func (b *tab) shown() []string {
	b.Helper()
	names := evaluate[[]string](b, `[...document.querySelectorAll(".outcome")].filter(e => !e.hidden && !e.closest("section").hidden).map(e => e.querySelector("summary").id.slice("scenario/".length))`)
	slices.Sort(names)
	return names
}

// names returns the sorted names of the outcomes that a function chooses.
func names(r report.Report, choose func(report.Outcome) bool) []string {
	names := []string{}
	for _, outcome := range r.Outcomes {
		if choose(outcome) {
			names = append(names, outcome.Name)
		}
	}
	slices.Sort(names)
	return names
}

// describe returns the text of an exception.
func describe(exception *runtime.RemoteObject) string {
	if exception == nil {
		return ""
	}
	return exception.Description
}
