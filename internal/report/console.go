package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// ConsoleOptions configure WriteConsole. The zero value is plain and short.
type ConsoleOptions struct {
	// Verbose adds a line for each requirement, and all mismatches and calls of a failure.
	Verbose bool
	// Color writes verdicts in ANSI colours.
	Color bool
	// Strict counts SHOULD as MUST in the last line.
	Strict bool
}

// WriteConsole writes the Report for people: a line for each area, then the failures, those with the same
// cause together, then what the API server lacks, then a line with the totals, the time and the verdict.
func WriteConsole(w io.Writer, r Report, options ConsoleOptions) error {
	r = r.Ordered()
	p := &printer{out: options.writer(w), options: options}
	p.target(r.Target)
	p.areas(areas(r.Outcomes))
	shown := []framework.Verdict{framework.Fail, framework.Errored, framework.Inconclusive}
	if r.FailOnUnsupported {
		shown = append(shown, framework.Unsupported)
	}
	for _, verdict := range shown {
		for _, group := range Groups(r.with(verdict)) {
			p.line("")
			p.group(group)
		}
	}
	p.notReached(r.Outcomes)
	if !r.FailOnUnsupported {
		p.unsupported(r.with(framework.Unsupported))
	}
	p.mutants(r.Mutants)
	p.line("")
	p.last(r)
	if p.err != nil {
		return fmt.Errorf("write report to console: %w", p.err)
	}
	return nil
}

// with returns the outcomes with a verdict, except those that were not reached.
func (r Report) with(verdict framework.Verdict) []Outcome {
	return slices.DeleteFunc(slices.Clone(r.Outcomes), func(o Outcome) bool { return o.Verdict != verdict || o.NotReached })
}

// group writes failures with one cause: the first, and the names of the others. If verbose, it writes all.
func (p *printer) group(g Group) {
	if p.options.Verbose {
		for i, outcome := range g.Outcomes {
			if i > 0 {
				p.line("")
			}
			p.failure(outcome)
		}
		return
	}
	p.failure(g.Outcomes[0])
	if len(g.Outcomes) > 1 {
		p.field("and", g.others())
	}
}

// unsupported writes what the API server lacks, and for how many scenarios. What is not served stands in one
// line.
func (p *printer) unsupported(outcomes []Outcome) {
	if len(outcomes) == 0 {
		return
	}
	p.line("")
	p.line("%s", p.colored(framework.Unsupported, string(framework.Unsupported)))
	for _, line := range unsupportedCauses(outcomes) {
		p.line("  %s", indented(printable(line), "       "))
	}
}

// unsupportedCauses returns a line for each cause of outcomes that are unsupported, with their number.
func unsupportedCauses(outcomes []Outcome) []string {
	var lines, names []string
	needs := 0
	for _, group := range Groups(outcomes) {
		if name := group.Outcomes[0].NotServed; name != "" {
			names = append(names, name)
			needs += len(group.Outcomes)
			continue
		}
		lines = append(lines, fmt.Sprintf("%3d  %s", len(group.Outcomes), cmp.Or(group.Cause, FirstLine(group.Outcomes[0].Reason))))
	}
	if slices.Sort(names); needs > 0 {
		lines = append(lines, fmt.Sprintf("%3d  need APIs that are not served: %s", needs, strings.Join(slices.Compact(names), ", ")))
	}
	return lines
}

// writer returns what a printer writes to, above w.
func (o ConsoleOptions) writer(w io.Writer) io.Writer {
	if o.Color {
		return redact.NewColorWriter(w)
	}
	return redact.NewWriter(w)
}

// printer writes lines and keeps the first error.
type printer struct {
	out     io.Writer
	options ConsoleOptions
	err     error
}

// line writes one line. The caller must pass text from the server through printable.
func (p *printer) line(format string, arguments ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf(format, arguments...), " "))
	}
}

func (p *printer) target(target TargetInfo) {
	text := "target " + target.describe()
	if len(target.Plugins) > 0 {
		text += " with " + strings.Join(target.Plugins, ", ")
	}
	if target.Transport != "" {
		text += ", webhooks by " + target.Transport
	}
	if target.Served {
		text += ", kept for several runs"
	}
	p.line("%s", printable(text))
	p.line("")
}

// describe returns a target in a few words: "envtest, API server v1.36.3".
func (t TargetInfo) describe() string {
	text := cmp.Or(t.Kind, "unknown")
	if t.ServerVersion != "" {
		text += ", API server " + t.ServerVersion
	}
	return text
}

func (p *printer) areas(all []area) {
	width := 0
	for _, area := range all {
		width = max(width, len(area.name))
	}
	for _, area := range all {
		p.line("%-*s  %s", width, printable(area.name), Count(area.outcomes))
		if !p.options.Verbose {
			continue
		}
		for _, outcome := range area.outcomes {
			p.requirement(outcome)
		}
	}
}

// requirement writes the line of one requirement.
func (p *printer) requirement(outcome Outcome) {
	verdict := p.colored(outcome.Verdict, fmt.Sprintf("%-12s", outcome.Verdict))
	text := fmt.Sprintf("%-6s  %s", outcome.Level, outcome.Name)
	switch outcome.Verdict {
	case framework.Skipped, framework.Unsupported:
		text += ": " + outcome.Reason
	default:
		text += fmt.Sprintf("  (%.3f s)", outcome.DurationSeconds)
	}
	p.line("  %s  %s", verdict, printable(text))
}

// notReached writes the scenarios that were not reached: their number by area, or each scenario if
// verbose.
func (p *printer) notReached(outcomes []Outcome) {
	left := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return !o.NotReached })
	if len(left) == 0 {
		return
	}
	p.line("")
	p.line("%s  %d not reached", p.colored(left[0].Verdict, string(left[0].Verdict)), len(left))
	for _, area := range areas(left) {
		text := fmt.Sprintf("%d of area %s", len(area.outcomes), area.name)
		if p.options.Verbose || len(area.outcomes) == 1 {
			var names []string
			for _, outcome := range area.outcomes {
				names = append(names, outcome.Name)
			}
			text = strings.Join(names, "\n")
		}
		p.line("  %s", indented(printable(text), "  "))
	}
}

// last writes why a run is incomplete, and the line with the totals.
func (p *printer) last(r Report) {
	if r.Incomplete != "" {
		p.line("incomplete: %s", indented(printable(r.Incomplete), "  "))
	}
	if reason := r.Target.implausible(); reason != "" {
		p.line("inconclusive: %s", printable(reason))
	}
	if r.ForeignRequests > 0 {
		p.line("rejected: %d requests to the webhooks of this run, from clients other than the API server; no verdict depends on them", r.ForeignRequests)
	}
	for _, warning := range r.warnings() {
		p.line("warning: %s", printable(warning))
	}
	for _, one := range r.NotSeen {
		p.line("not seen: %s", printable(one.String()))
	}
	if r.Claim != nil {
		p.line("%s", printable(r.Claim.String()))
	}
	verdict, word := verdictOf(r, p.options.Strict)
	noun := "scenario"
	if r.Target.Kind == KindWebhook {
		noun = "rule"
	}
	if r.Summary.Total != 1 {
		noun += "s"
	}
	times := fmt.Sprintf("total %.1f s", r.Timing.Total)
	if r.Target.Kind != "" && r.Target.Kind != KindWebhook { // otherwise no server responded, or there is none
		times = fmt.Sprintf("target ready in %.1f s, catalogue in %.1f s, ", r.Timing.TargetReady, r.Timing.Catalogue) + times
	}
	p.line("%d %s: %d pass, %d fail%s, %d unsupported, %d skipped, %d inconclusive, %d error (%s): %s",
		r.Summary.Total, noun, r.Summary.Pass, r.Summary.Fail, known(r.Outcomes), r.Summary.Unsupported, r.Summary.Skipped,
		r.Summary.Inconclusive, r.Summary.Error, times, p.colored(verdict, word))
}

// warnings returns the warnings of the outcomes, each once.
func (r Report) warnings() []string {
	var all []string
	for _, outcome := range r.Outcomes {
		if outcome.Evidence != nil {
			all = append(all, outcome.Evidence.Warnings...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// known returns the number of known failures, or "".
func known(outcomes []Outcome) string {
	count := 0
	for _, outcome := range outcomes {
		if outcome.KnownFailing != "" {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d known)", count)
}

// verdictOf returns the word for a whole run, and the verdict that decides its colour. A run that
// ended early, or in which nothing passed, is not a pass.
func verdictOf(r Report, strict bool) (framework.Verdict, string) {
	code := r.ExitCode(strict)
	switch {
	case code == ExitFail:
		return framework.Fail, "FAIL"
	case r.Interrupted:
		return framework.Errored, "INTERRUPTED"
	case code == ExitError || code == ExitUsage || r.Incomplete != "":
		return framework.Errored, "ERROR"
	case code == ExitInconclusive:
		return framework.Inconclusive, "INCONCLUSIVE"
	case code == ExitNothing && r.Summary.Total == 0:
		return framework.Inconclusive, "NOTHING SELECTED"
	case code == ExitNothing && !r.judged():
		return framework.Inconclusive, "NOTHING JUDGED"
	case code == ExitNothing:
		return framework.Inconclusive, "NOTHING PASSED"
	default:
		return framework.Pass, "PASS"
	}
}

// Word returns the verdict on the whole run in one or two words, such as "PASS" or "NOTHING
// JUDGED", and the verdict that decides its colour.
func (r Report) Word() (framework.Verdict, string) { return verdictOf(r.Ordered(), r.Strict) }

// colored wraps a string in the colour of a verdict.
func (p *printer) colored(verdict framework.Verdict, text string) string {
	if !p.options.Color {
		return text
	}
	color := redact.Yellow
	switch verdict {
	case framework.Pass:
		color = redact.Green
	case framework.Fail, framework.Errored:
		color = redact.Red
	}
	return redact.Colored(color, text)
}
