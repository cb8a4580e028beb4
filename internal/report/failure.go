package report

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// shortList is the number of mismatches, and of calls, that are shown unless verbose.
const shortList = 5

// failure writes a failure: name and level, requirement, source, expected, actual, the first call
// that differs from the expectation, and the command that runs the scenario again.
func (p *printer) failure(outcome Outcome) {
	name := printable(fmt.Sprintf("%s  %s", outcome.Name, outcome.Level))
	p.line("%s  %s", p.colored(outcome.Verdict, string(outcome.Verdict)), name)
	p.field("requirement", outcome.Requirement)
	if outcome.Fix != "" && !p.options.Verbose {
		p.rule(outcome)
		return
	}
	p.field("source", strings.Join(outcome.Source, "\n"))
	evidence := outcome.Evidence
	if evidence == nil {
		evidence = &Evidence{}
	}
	if len(evidence.Mismatches) == 0 || outcome.Verdict == framework.Inconclusive {
		p.field("reason", outcome.Reason)
	}
	p.mismatches(evidence.Mismatches)
	p.field("known", outcome.KnownFailing)
	p.field("in step", stepOf(outcome.File, *evidence))
	p.field("response", evidence.Response)
	p.field("details", evidence.Details)
	p.field("refused by", evidence.RefusedBy)
	if outcome.Verdict == framework.Fail && !strings.HasPrefix(outcome.Reason, outcome.Cause) {
		p.field("cause", outcome.Cause)
	}
	for _, cause := range evidence.Causes {
		p.field("cause", cause)
	}
	for _, warning := range evidence.Warnings {
		p.field("warning", warning)
	}
	for _, decision := range evidence.Decisions {
		p.field("inferred", decision.Subject+": "+decision.Text)
	}
	if outcome.Verdict == framework.Fail && outcome.Fix == "" || len(evidence.Timeline) > 0 {
		p.timeline(evidence.Timeline)
	}
	for _, one := range evidence.NotSeen {
		p.field("not seen", one.String())
	}
	p.field("fix", outcome.Fix)
	p.field("rerun", outcome.Rerun)
}

// rule writes how a rule is broken, first of all, and how to mend it.
func (p *printer) rule(outcome Outcome) {
	const most = 12
	lines := strings.Split(outcome.Reason, "\n")
	if more := len(lines) - most; more > 1 {
		lines = append(lines[:most], fmt.Sprintf("and %d more lines (-v shows all)", more))
	}
	p.field("reason", strings.Join(lines, "\n"))
	p.field("fix", outcome.Fix)
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

// stepOf returns the step of the scenario, or "" if it is not known.
func stepOf(file string, evidence Evidence) string {
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

// timeline writes the calls: all of them if there are few or if verbose, otherwise the first call that is
// not as expected. The calls of plugins that did nothing and audit annotations are only written if verbose.
func (p *printer) timeline(all []TimelineEntry) {
	var calls, divergent []string
	for _, entry := range all {
		if p.options.Verbose || entry.Phase != "audit" && (!entry.Idle || entry.Divergent) {
			calls = append(calls, entry.text())
		}
		if entry.Divergent && len(divergent) == 0 {
			divergent = append(divergent, entry.text())
		}
	}
	switch {
	case len(calls) == 0:
		calls = []string{"none recorded"}
	case !p.options.Verbose && len(calls) > shortList:
		calls = append(divergent, fmt.Sprintf("-v shows all %d calls", len(calls)))
	}
	p.field("calls", strings.Join(calls, "\n"))
}

// text returns the entry in one line, marked observed or inferred.
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
	switch {
	case e.Plugin != "":
		text += fmt.Sprintf(" round %d  plugin %s", e.Round, e.Plugin)
	case e.Webhook != "":
		text += fmt.Sprintf(" round %d  %s", e.Round, e.Webhook)
	}
	return text + "  " + strings.ReplaceAll(e.Summary, "\n", " ")
}

// field writes a label and a string, which can have several lines. It writes nothing for
// an empty text.
func (p *printer) field(label, text string) {
	if text == "" {
		return
	}
	p.line("  %-11s  %s", label, indented(printable(text), strings.Repeat(" ", 15)))
}

func indented(text, by string) string {
	return strings.ReplaceAll(text, "\n", "\n"+by)
}

// printable is redact.Printable: a terminal executes the other characters, and XML forbids most of them.
func printable(text string) string { return redact.Printable(text) }
