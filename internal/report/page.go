package report

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// runPage is what report.tmpl is executed with.
type runPage struct {
	Report
	// Word is the verdict on the whole run. Class is the verdict that decides its colour.
	Word  string
	Class framework.Verdict
	// Target is the target in a few words.
	Target string
	Counts []count
	Levels []framework.Level
	Areas  []areaRow
	// Sections have all outcomes.
	Sections []section
	// Behaviours are the IDs that occur.
	Behaviours []string
	// On and Off are the feature gates.
	On, Off []string
}

// count is a number of outcomes with a verdict, and the link that shows them.
type count struct {
	Number  int
	Verdict framework.Verdict
	Link    string
}

// areaRow is a row of the table of areas.
type areaRow struct {
	Name, Link string
	// Cells has one for each level, and one for the whole area.
	Cells [][]count
}

// section has the outcomes of one verdict.
type section struct {
	ID, Title, Text string
	Number          int
	Causes          []causeOfAll
}

// causeOfAll has the outcomes with one cause. Text is empty if there is one outcome.
type causeOfAll struct {
	Text     string
	Outcomes []shownOutcome
}

// shownOutcome is an outcome with what the template needs in addition.
type shownOutcome struct {
	Outcome
	// Open is true for the first failures, one of each cause.
	Open bool
	// Same is true if its cause is that of others, and stands above them.
	Same bool
	// LeftOut is true if the page leaves out the evidence, which is in report.json.
	LeftOut bool
}

func newRun(r Report) runPage {
	class, word := r.Word()
	r = r.Ordered()
	out := runPage{Report: r, Word: word, Class: class, Target: r.Target.describe(), Levels: framework.Levels()}
	out.Counts = counts(r.Outcomes, url.Values{})
	out.Areas = areaRows(r.Outcomes)
	out.Sections = sections(r.Outcomes)
	for _, one := range r.Outcomes {
		out.Behaviours = append(out.Behaviours, one.Behaviours...)
	}
	slices.Sort(out.Behaviours)
	out.Behaviours = slices.Compact(out.Behaviours)
	for _, gate := range slices.Sorted(maps.Keys(r.Target.FeatureGates)) {
		if r.Target.FeatureGates[gate] {
			out.On = append(out.On, gate)
		} else {
			out.Off = append(out.Off, gate)
		}
	}
	return out
}

// counts counts outcomes by verdict. Each count links to its outcomes, by the filter and the
// verdict.
func counts(outcomes []Outcome, filter url.Values) []count {
	var all []count
	for _, verdict := range framework.Verdicts() {
		number := 0
		for _, one := range outcomes {
			if one.Verdict == verdict {
				number++
			}
		}
		if number > 0 {
			all = append(all, count{number, verdict, link(filter, verdict)})
		}
	}
	return all
}

// link returns the link that shows the outcomes with this verdict that also match the filter.
func link(filter url.Values, verdict framework.Verdict) string {
	with := maps.Clone(filter)
	with.Set("verdict", string(verdict))
	return "#" + with.Encode()
}

// areaRows returns the rows of the table of areas.
func areaRows(outcomes []Outcome) []areaRow {
	var all []areaRow
	for _, one := range areas(outcomes) {
		filter := url.Values{"area": {one.name}}
		row := areaRow{Name: one.name, Link: "#" + filter.Encode()}
		for _, level := range framework.Levels() {
			of := slices.DeleteFunc(slices.Clone(one.outcomes), func(o Outcome) bool { return o.Level != level })
			row.Cells = append(row.Cells, counts(of, url.Values{"area": {one.name}, "level": {string(level)}}))
		}
		row.Cells = append(row.Cells, counts(one.outcomes, filter))
		all = append(all, row)
	}
	return all
}

const (
	// opened is the number of failures that are open at first.
	opened = 3
	// detailed is the number of outcomes with evidence in the page, so that it opens quickly
	// even if everything fails.
	detailed = 150
)

// sections returns the outcomes by verdict: first those that need attention.
func sections(outcomes []Outcome) []section {
	all := []section{
		{ID: "fail", Title: "Failed", Text: "The server does not do what the requirement says."},
		{ID: "error", Title: "Errors", Text: "The cause is a mistake in a scenario or in admissiontest, or a failure of the infrastructure. These verdicts say nothing about the server."},
		{ID: "inconclusive", Title: "Inconclusive", Text: "The observations do not show whether the server does what the requirement says."},
		{ID: "known", Title: "Known failures", Text: "These scenarios failed, as listed with --known-failing. They do not fail the run."},
		{ID: "unsupported", Title: "Unsupported", Text: "These scenarios need a version, a feature gate, a kind or a capability that this target does not have."},
		{ID: "skipped", Title: "Skipped", Text: "The operator excluded these scenarios."},
		{ID: "pass", Title: "Passed", Text: "Every expectation held."},
	}
	details := 0
	for _, group := range Groups(outcomes) {
		one := group.Outcomes[0]
		id := string(one.Verdict)
		if one.KnownFailing != "" {
			id = "known"
		}
		at := &all[slices.IndexFunc(all, func(s section) bool { return s.ID == id })]
		open := (id == "fail" || id == "error") && !one.NotReached && len(at.Causes) < opened
		same := causeOfAll{}
		if len(group.Outcomes) > 1 {
			same.Text = group.Cause
		}
		for i, one := range group.Outcomes {
			if one.Evidence != nil {
				details++
			}
			same.Outcomes = append(same.Outcomes, shownOutcome{Outcome: one, Open: open && i == 0, Same: same.Text != "", LeftOut: one.Evidence != nil && details > detailed})
		}
		at.Number += len(group.Outcomes)
		at.Causes = append(at.Causes, same)
	}
	return slices.DeleteFunc(all, func(s section) bool { return s.Number == 0 })
}

// Position returns where the scenario is: "a.yaml:3", or the position of the step that decided.
func (o shownOutcome) Position() string {
	if line := o.line(); o.File != "" && line > 0 {
		return fmt.Sprintf("%s:%d", o.File, line)
	}
	return o.File
}

// Why returns why the verdict is not a pass, in one line.
func (o shownOutcome) Why() string {
	switch {
	case o.Verdict == framework.Pass, o.Same:
		return ""
	case o.KnownFailing != "":
		return "known: " + FirstLine(o.KnownFailing)
	case o.NotReached:
		return "not reached"
	}
	if o.Evidence != nil && len(o.Evidence.Mismatches) > 0 && o.Verdict == framework.Fail {
		first := o.Evidence.Mismatches[0]
		return FirstLine(fmt.Sprintf("%s: expected %s, actual %s", first.Path, first.Expected, first.Actual))
	}
	return FirstLine(o.Reason)
}

// ShowReason reports whether the details show the reason. They do not if there are mismatches,
// which say more.
func (o shownOutcome) ShowReason() bool {
	return o.Reason != "" && (o.Evidence == nil || len(o.Evidence.Mismatches) == 0)
}

// Calls returns the entries of the timeline that are calls, without the calls of plugins that did nothing.
func (o shownOutcome) Calls() []TimelineEntry {
	return slices.DeleteFunc(o.entries(false), func(e TimelineEntry) bool { return e.Idle && !e.Divergent })
}

// Annotations returns the entries of the timeline that are annotations of the audit event.
func (o shownOutcome) Annotations() []TimelineEntry { return o.entries(true) }

func (o shownOutcome) entries(audit bool) []TimelineEntry {
	if o.Evidence == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.Evidence.Timeline), func(e TimelineEntry) bool { return (e.Phase == "audit") != audit })
}

// HasPlugins reports whether the calls of plugins were observed.
func (o shownOutcome) HasPlugins() bool {
	return slices.ContainsFunc(o.entries(false), func(e TimelineEntry) bool { return e.Plugin != "" })
}

// Behaviour returns the IDs for the filter.
func (o shownOutcome) Behaviour() string { return strings.Join(o.Behaviours, " ") }
