package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// Text returns a report for people: the findings, what could not be judged, and a summary. Unless verbose is true, findings that differ only
// in the object are one entry, and all notes of a rule, and what the same rules could not judge, are one line.
func (r *Report) Text(verbose bool) string {
	var out, lines strings.Builder
	for _, group := range groupBy(r.Findings, func(f Finding) string { return f.cause(verbose) }) {
		if f := group[0]; verbose || f.Severity != Note {
			f.write(&out, group[1:])
		} else {
			fmt.Fprintf(&lines, "%s  %s %s  %s %s%s: %s\n", f.Severity, f.Rule, f.Name, f.Object, f.Field, andMore(group, len(group)-1), f.Message)
		}
	}
	inconclusive, name := slices.DeleteFunc(slices.Clone(r.NotChecked), func(u Undecided) bool { return u.Verdict != framework.Inconclusive }), "inconclusive"
	if r.remarks {
		name = "remark"
	}
	groups := groupBy(causes(inconclusive), func(u Undecided) string { return u.Rule })
	if verbose {
		groups = groupBy(r.NotChecked, func(u Undecided) string { return fmt.Sprint(u) })
	}
	for _, group := range groups {
		u := group[0]
		fmt.Fprintf(&lines, "%s  %s  %s%s: %s\n", strings.Replace(string(u.Verdict), "inconclusive", name, 1), u.Rule, cmp.Or(u.Object, "every object"), andMore(nil, len(group)-1), u.Reason)
	}
	if lines.Len() > 0 {
		lines.WriteString("\n")
	}
	s := r.Summary
	return fmt.Sprintf("%s%s%d webhooks, %d policies: %d errors, %d warnings, %d notes, %d suppressed, %d %s\n", out.String(), lines.String(),
		r.Webhooks, r.Policies, s.Errors, s.Warnings, s.Notes, s.Suppressed, s.Inconclusive, strings.Replace(name, "remark", "remarks", 1))
}

// groupBy returns the items with the same key together, in the order of the first of each.
func groupBy[T any](items []T, key func(T) string) (groups [][]T) {
	index := map[string]int{}
	for _, item := range items {
		at, known := index[key(item)]
		if !known {
			at = len(groups)
			index[key(item)], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], item)
	}
	return groups
}

// cause is the same for findings that are printed together.
func (f Finding) cause(verbose bool) string {
	switch {
	case verbose || f.Severity != Note && len(f.Patch) > 0: // which is of one object
		return f.Webhook + f.String()
	case f.Severity == Note:
		return f.Rule
	}
	return strings.Join([]string{f.Rule, string(f.Severity), f.Message, f.Fix}, "\x00")
}

// causes returns what several rules could not judge for the same reason as one.
func causes(all []Undecided) (joined []Undecided) {
	for _, group := range groupBy(all, func(u Undecided) string { return u.Object + "\x00" + u.Reason }) {
		one := group[0]
		for _, other := range group[1:] {
			one.Rule += ", " + other.Rule
		}
		joined = append(joined, one)
	}
	return joined
}

// andMore says how many places are not printed: of a finding, also its other webhooks.
func andMore(findings []Finding, count int) string {
	for _, f := range findings {
		count += strings.Count("\x00"+strings.Join(f.More, "\x00"), "\x00webhook ")
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more (-v prints each)", count)
}

// write writes a finding, and the objects of others with the same cause.
func (f Finding) write(out *strings.Builder, others []Finding) {
	fmt.Fprintf(out, "%s  %s %s  %s  %s\n", f.Severity, f.Rule, f.Name, f.Object, f.Field)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-8s  %s\n", label, strings.ReplaceAll(text, "\n", "\n            "))
		}
	}
	line("at", f.Position())
	line("webhook", f.Webhook)
	line("request", f.Request)
	for _, more := range f.More {
		line("and", more)
	}
	for _, other := range others {
		line("and", strings.Join([]string{other.Object, other.Field, other.Position(), other.Request}, " "))
	}
	line("what", f.Message)
	line("unknown", f.Unknown)
	line("fix", f.Fix)
	if patch, err := json.Marshal(f.Patch); err == nil && len(f.Patch) > 0 {
		line("patch", string(patch))
	}
	line("source", f.Source[0])
	out.WriteString("\n")
}

// Summary has the numbers of a report.
type Summary struct {
	// Errors, Warnings and Notes are the findings that nothing suppresses.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	// Suppressed are the others, and the pairs of a rule and an object that could not be judged in an earlier report either.
	Suppressed int `json:"suppressed"`
	// Inconclusive is the number of pairs of a rule and an object that could not be judged.
	Inconclusive int `json:"inconclusive"`
}

// summarize sets the Summary, and the patches that depend on what else is found.
func (r *Report) summarize() {
	r.setPatches()
	count := map[Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	inconclusive := 0
	for _, u := range r.NotChecked {
		if u.Verdict == framework.Inconclusive {
			inconclusive++
		}
	}
	r.Summary = Summary{count[Error], count[Warning], count[Note], len(r.Suppressed) + r.accepted, inconclusive}
}
