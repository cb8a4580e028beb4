package browser

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

const (
	wide   = 1280
	narrow = 320
	height = 900
)

// expect waits until the page says how many outcomes are shown, and compares which.
func (b *tab) expect(what string, r report.Report, choose func(report.Outcome) bool) {
	b.Helper()
	want := names(r, choose)
	b.await(what, fmt.Sprintf(`document.getElementById("shown").textContent === "%d of %d shown"`, len(want), len(r.Outcomes)))
	if got := b.shown(); !slices.Equal(got, want) {
		b.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (b *tab) fragment() string {
	b.Helper()
	return evaluate[string](b, "location.hash")
}

// Each field of the filter works, alone and with the others, and the URL keeps it.
func TestFilter(t *testing.T) {
	r := sample(200)
	b := newTab(t, wide, height)
	at := b.open(write(t, r), "")
	all := func(report.Outcome) bool { return true }
	b.expect("at first", r, all)

	b.click(`input[value=fail]`)
	b.expect("failed", r, func(o report.Outcome) bool { return o.Verdict == framework.Fail })
	b.click(`input[value=error]`)
	b.expect("failed or error", r, func(o report.Outcome) bool { return o.Verdict == framework.Fail || o.Verdict == framework.Errored })
	b.click(`input[value=SHOULD]`)
	chosen := func(o report.Outcome) bool {
		return (o.Verdict == framework.Fail || o.Verdict == framework.Errored) && o.Level == framework.Should
	}
	b.expect("and SHOULD", r, chosen)
	if got := b.fragment(); got != "#verdict=fail,error&level=SHOULD" {
		t.Errorf("fragment: got %q", got)
	}
	b.click(`button[type=reset]`)
	b.expect("cleared", r, all)
	if got := evaluate[string](b, "location.href"); got != at {
		t.Errorf("cleared: got %q, want %q", got, at)
	}

	b.keys(`select[name=area]`, "wire")
	b.expect("an area", r, func(o report.Outcome) bool { return o.Area == "wire" })
	b.click(`button[type=reset]`)
	b.keys(`input[name=behaviour]`, "order-04")
	b.expect("the beginning of an ID", r, func(o report.Outcome) bool { return strings.HasPrefix(o.Behaviours[0], "ORDER-04") })
	b.click(`button[type=reset]`)
	b.keys(`input[name=text]`, "REFUSED send")
	b.expect("words of the reason", r, func(o report.Outcome) bool { return strings.Contains(o.Reason, "refused") })
	if got := b.fragment(); got != "#text=REFUSED+send" {
		t.Errorf("fragment: got %q", got)
	}
	b.keys(`input[name=text]`, " & <b>")
	b.expect("nothing", r, func(report.Outcome) bool { return false })
	b.do(chromedp.Navigate(at+b.fragment()), chromedp.Reload())
	if got := evaluate[string](b, `document.forms[0].text.value`); got != "REFUSED send & <b>" {
		t.Errorf("after loading again, the text is %q", got)
	}
	b.clean()
}

// The links of the summary and of the table of areas show what they count.
func TestCountsLead(t *testing.T) {
	r := sample(200)
	b := newTab(t, wide, height)
	b.open(write(t, r), "")
	for _, link := range evaluate[[]string](b, `[...document.querySelectorAll("a.count")].map(a => a.getAttribute("href"))`) {
		b.click(`a.count[href="` + link + `"]`)
		text := evaluate[string](b, fmt.Sprintf("document.querySelector('a.count[href=\"%s\"]').textContent", link))
		number, _, _ := strings.Cut(text, " ")
		b.await(link+" says "+text, fmt.Sprintf(`location.hash === %q && document.getElementById("shown").textContent === "%s of 200 shown"`, link, number))
		if got := fmt.Sprint(len(b.shown())); got != number {
			t.Errorf("%s says %q, and shows %s", link, text, got)
		}
	}
	b.clean()
}

// A link to an outcome opens it, also if the filter hides it.
func TestLink(t *testing.T) {
	r := sample(2000)
	b := newTab(t, wide, height)
	name := r.Outcomes[1992].Name
	at := b.open(write(t, r), "#scenario/"+name)
	isOpen := func(what string) {
		t.Helper()
		const js = `(() => { const s = document.getElementById("scenario/%s"), e = s.parentElement, at = s.getBoundingClientRect(); return e.open && !e.hidden && at.top >= 0 && at.top < innerHeight && document.activeElement === s; })()`
		b.await(what, fmt.Sprintf(js, name))
		if t.Failed() {
			t.Fatal(evaluate[string](b, `JSON.stringify({focus: document.activeElement.outerHTML.slice(0, 60), at: scrollY, in: document.body.scrollHeight, target: document.querySelector("summary:target")?.getBoundingClientRect()})`))
		}
	}
	isOpen("link")
	b.do(chromedp.Navigate(at + "#area=order"))
	b.expect("filter", r, func(o report.Outcome) bool { return o.Area == "order" })
	b.do(chromedp.Navigate(at + "#scenario/" + name))
	isOpen("link to a hidden outcome")
	b.do(chromedp.Navigate(at + "#verdict=fail&area=wire&level=MUST&behaviour=WIRE&text=order"))
	b.expect("all fields", r, func(o report.Outcome) bool {
		return o.Verdict == framework.Fail && o.Area == "wire" && o.Level == framework.Must
	})
	b.do(chromedp.Navigate(at + "#scenario/gone.since-then"))
	b.await("link to an unknown outcome", `document.getElementById("shown").textContent.startsWith("This report has no scenario gone.since-then.")`)
	for _, nonsense := range []string{"#%E0%A4", "#text=%", "#scenario/%zz", "#verdict=nonsense&verdict=", "#outcomes", "#filter", "#=&=&", "#__proto__=1"} {
		b.do(chromedp.Navigate(at + nonsense))
	}
	b.do(chromedp.Navigate(at + "#"))
	b.clean()
}

// A link to an outcome works without JavaScript, and everything can be read.
func TestWithoutScript(t *testing.T) {
	r := sample(30)
	b := newTab(t, wide, height)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open(write(t, r), "#scenario/"+r.Outcomes[20].Name)
	if got := b.shown(); len(got) != 30 {
		t.Errorf("%d outcomes are shown, want 30", len(got))
	}
	if !evaluate[bool](b, `document.getElementById("filter").hidden && document.querySelector("summary:target") !== null`) {
		t.Error("the filter, which needs JavaScript, is shown, or the link leads nowhere")
	}
	b.clean()
}

// Everything can be done with the keyboard.
func TestKeyboard(t *testing.T) {
	r := sample(40)
	b := newTab(t, wide, height)
	b.open(write(t, r), "")
	focus := func(selector string) {
		t.Helper()
		b.await("the focus is on "+selector, fmt.Sprintf("document.activeElement === document.querySelector(%q)", selector))
	}
	press := func(keys string) { b.do(chromedp.KeyEvent(keys)) }
	press(kb.Tab)
	focus(".skip")
	press(kb.Enter)
	focus("#outcomes")
	press(kb.Tab)
	focus("input[name=text]")
	press("refused")
	b.expect("typed", r, func(o report.Outcome) bool { return strings.Contains(o.Reason, "refused") })
	evaluate[bool](b, `window.dispatchEvent(new HashChangeEvent("hashchange"))`) // of the skip link, which can come late
	focus("input[name=text]")
	press(kb.Tab + kb.Tab + kb.Tab)
	focus("input[name=verdict]")
	press(" ")
	b.expect("and passed", r, func(report.Outcome) bool { return false })
	for !evaluate[bool](b, `document.activeElement.type === "reset"`) {
		press(kb.Tab)
	}
	press(kb.Enter)
	b.expect("cleared", r, func(report.Outcome) bool { return true })
	press(kb.Tab)
	focus(".outcome > summary")
	before := evaluate[bool](b, `document.querySelector(".outcome").open`)
	press(kb.Enter)
	b.await("Enter toggles an outcome", fmt.Sprintf(`document.querySelector(".outcome").open !== %t`, before))
	press(" ")
	b.await("Space toggles an outcome", fmt.Sprintf(`document.querySelector(".outcome").open === %t`, before))
	press(kb.Tab) // into the outcome, which is open: a region that scrolls
	b.await("the focus is on a region that scrolls", `document.activeElement.getAttribute("role") === "region"`)
	b.clean()
}

// A screen reader has a name for everything that it can go to.
func TestNamesForScreenReaders(t *testing.T) {
	b := newTab(t, wide, height)
	b.open(write(t, sample(40)), "")
	nodes := call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	roles := map[string]int{}
	for _, node := range nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role := strings.Trim(string(node.Role.Value), `"`)
		switch role {
		case "searchbox", "combobox", "checkbox", "button", "link", "region", "DisclosureTriangle", "search", "heading", "list", "group", "table", "status":
			roles[role]++
		}
		switch role {
		case "searchbox", "combobox", "checkbox", "button", "link", "region", "DisclosureTriangle", "search", "heading":
			if name := node.Name; name == nil || strings.Trim(string(name.Value), `" `) == "" {
				t.Errorf("an element with the role %s has no name", role)
			}
		}
	}
	for _, role := range []string{"searchbox", "combobox", "checkbox", "button", "link", "region", "DisclosureTriangle", "search", "heading", "list", "group", "table", "status"} {
		if roles[role] == 0 {
			t.Errorf("the page has no element with the role %s; it has %v", role, roles)
		}
	}
}

// Nothing of a server or a scenario is executed, and nothing is requested.
func TestNothingIsExecuted(t *testing.T) {
	b := newTab(t, wide, height)
	b.open(write(t, hostile(t)), "")
	evaluate[any](b, `document.querySelectorAll("details").forEach(e => e.open = true)`)
	if shown := b.shown(); len(shown) != 7 {
		t.Errorf("%d outcomes are shown, want 7", len(shown))
	}
	b.clean()
}

// The tests see what they look for.
func TestProblemsAreSeen(t *testing.T) {
	for text, want := range map[string]string{
		"<script>hacked()</script>":       "exception: Uncaught ReferenceError: hacked",
		"<script>console.log(1)</script>": "console.log",
		"<img src=http://127.0.0.1:1/x>":  "request: Image http://127.0.0.1:1/x",
	} {
		t.Run(want, func(t *testing.T) {
			b := newTab(t, wide, height)
			b.open(text, "")
			if got := b.seen(); !slices.ContainsFunc(got, func(problem string) bool { return strings.HasPrefix(problem, want) }) {
				t.Errorf("%s: got %q, want %s", text, got, want)
			}
		})
	}
}

// The page fits from 320 pixels on, in light and dark, and its text has enough contrast.
func TestFits(t *testing.T) {
	pages := map[string]report.Report{"0 outcomes": sample(0), "1 outcome": sample(1), "100 outcomes": sample(100), "hostile": hostile(t)}
	for _, width := range []int{narrow, 768, wide} {
		b := newTab(t, width, height)
		for name, r := range pages {
			for _, scheme := range []string{"light", "dark"} {
				call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				b.open(write(t, r), "")
				evaluate[any](b, `[...document.querySelectorAll("details")].slice(0, 10).forEach(e => e.open = true)`)
				if got := evaluate[int](b, "document.documentElement.scrollWidth"); got > width {
					t.Errorf("%s, %s: the page has %d pixels, want at most %d", name, scheme, got, width)
				}
				if low := evaluate[[]string](b, contrast); len(low) > 0 {
					t.Errorf("%s, %s: text with a contrast below 4.5: %q", name, scheme, low)
				}
			}
		}
	}
}

// contrast returns the classes or names of elements with text whose contrast is below 4.5, the minimum of
// WCAG 2 level AA (https://www.w3.org/TR/WCAG22/#contrast-minimum).
const contrast = `(() => {
	const rgb = text => text.match(/[\d.]+/g).map(Number);
	const luminance = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const back = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
	const low = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || ["SCRIPT", "OPTION"].includes(e.tagName)) continue;
		const [a, b] = [luminance(rgb(getComputedStyle(e).color)), luminance(back(e))].sort((x, y) => y - x);
		if ((a + .05) / (b + .05) < 4.5) low.add(e.tagName + "." + e.className);
	}
	return [...low];
})()`

// With -update, the picture in docs/ is made.
func TestPicture(t *testing.T) {
	if !golden.Update() {
		t.Skip("it only makes docs/report.png, with -update")
	}
	r := sample(400)
	r.Outcomes = slices.DeleteFunc(r.Outcomes, func(o report.Outcome) bool {
		return !slices.Contains([]string{"order", "reinvocation", "wire"}, o.Area)
	})
	b := newTab(t, 1000, 1500)
	b.open(write(t, r), "#verdict=fail&area=order")
	picture, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../../docs/report.png", picture, 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}

// BenchmarkOpen opens the page of 2,000 outcomes.
func BenchmarkOpen(b *testing.B) {
	browser := newTab(b, wide, height)
	text := write(b, sample(2000))
	b.ResetTimer()
	var millis float64
	for range b.N {
		browser.open(text, "")
		millis += evaluate[float64](browser, "performance.getEntriesByType('navigation')[0].loadEventEnd")
	}
	b.ReportMetric(millis/float64(b.N), "ms/load")
}
