package report

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/admissiontest/admissiontest/framework"
)

// shortList is how many mismatches of a failure are shown unless verbose.
const shortList = 5

// failure writes what did not hold: slug and level, the law, where it stands, what
// was expected, what was found, the first divergent call, and how to run it again.
func (p *printer) failure(outcome Outcome) {
	name := printable(fmt.Sprintf("%s  %s", outcome.Name, outcome.Level))
	p.line("%s  %s", p.colored(outcome.Verdict, string(outcome.Verdict)), name)
	p.field("law", outcome.Requirement)
	p.field("stands in", strings.Join(outcome.Source, "\n"))
	evidence := outcome.Evidence
	if evidence == nil {
		evidence = &Evidence{}
	}
	if len(evidence.Mismatches) == 0 {
		p.field("reason", outcome.Reason)
	}
	p.mismatches(evidence.Mismatches)
	p.field("in step", place(outcome.File, *evidence))
	p.field("answer", evidence.Response)
	if outcome.Verdict == framework.Fail || len(evidence.Timeline) > 0 {
		p.timeline(evidence.Timeline)
	}
	p.field("rerun", outcome.Rerun)
}

func (p *printer) mismatches(all []Mismatch) {
	shown := all
	if !p.options.Verbose && len(all) > shortList {
		shown = all[:shortList]
	}
	for _, mismatch := range shown {
		p.field("expected", mismatch.Path+": "+mismatch.Expected)
		p.field("actual", mismatch.Path+": "+mismatch.Actual)
	}
	if more := len(all) - len(shown); more > 0 {
		p.field("", fmt.Sprintf("and %d more (-v shows all)", more))
	}
}

// place says where in the scenario it happened; "" where that is not known.
func place(file string, evidence Evidence) string {
	if evidence.Step == 0 {
		return ""
	}
	text := fmt.Sprint(evidence.Step)
	if evidence.Action != "" {
		text += ", " + evidence.Action
	}
	switch {
	case file != "" && evidence.Line > 0:
		text += fmt.Sprintf(" (%s:%d)", file, evidence.Line)
	case file != "":
		text += fmt.Sprintf(" (%s)", file)
	}
	return text
}

// timeline writes the first divergent call, or all when verbose.
func (p *printer) timeline(all []TimelineEntry) {
	if len(all) == 0 {
		p.field("calls", "none recorded")
		return
	}
	var lines []string
	for _, entry := range all {
		if p.options.Verbose || entry.Divergent {
			lines = append(lines, entry.text())
		}
		if entry.Divergent && !p.options.Verbose {
			break
		}
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("none diverges by itself (-v shows the timeline of %d)", len(all)))
	}
	p.field("calls", strings.Join(lines, "\n"))
}

// text returns the entry on one line, marked observed or inferred.
func (e TimelineEntry) text() string {
	mark, how, when := " ", "inferred", "        ?"
	if e.Divergent {
		mark = ">"
	}
	if e.Observed {
		how = "observed"
		when = fmt.Sprintf("%+7.1fms", e.OffsetMillis)
	}
	text := fmt.Sprintf("%s %s  %s  %s", mark, when, how, e.Phase)
	if e.Webhook != "" {
		text += fmt.Sprintf(" round %d  %s", e.Round, e.Webhook)
	}
	return text + "  " + strings.ReplaceAll(e.Summary, "\n", " ")
}

// field writes a label and a text, which can have several lines. An empty text is
// left out.
func (p *printer) field(label, text string) {
	if text == "" {
		return
	}
	p.line("  %-9s  %s", label, indented(printable(text), "             "))
}

func indented(text, by string) string {
	return strings.ReplaceAll(text, "\n", "\n"+by)
}

// printable replaces what a terminal would obey and XML forbids. Line ends stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\uFFFE', r == '\uFFFF':
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}
