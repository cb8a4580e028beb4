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

// DiffKind is the kind of a Diff.
const DiffKind = "ReportDiff"

// Diff is what differs between two runs. Compare creates one.
type Diff struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Before     Side   `json:"before"`
	After      Side   `json:"after"`
	// Differences are the differences between the two API servers.
	Differences []Difference `json:"differences,omitempty"`
	// Changed has the scenarios whose verdict differs, New those that only the later run has, and
	// Gone those that only the earlier run has. Each list is sorted by name.
	Changed []Change `json:"changed"`
	New     []Change `json:"new"`
	Gone    []Change `json:"gone"`
	// Unchanged is the number of scenarios with the same verdict.
	Unchanged int `json:"unchanged"`
}

// Side is one of the two runs.
type Side struct {
	// File is where the report was read from.
	File        string       `json:"file,omitempty"`
	Target      TargetInfo   `json:"target"`
	Environment *Environment `json:"environment,omitempty"`
	Summary     Summary      `json:"summary"`
	// Incomplete is why some scenarios were not reached.
	Incomplete string `json:"incomplete,omitempty"`
}

// Change is a scenario whose verdict differs.
type Change struct {
	Name  string          `json:"name"`
	Area  string          `json:"area"`
	Level framework.Level `json:"level"`
	// Before and After are the verdicts. Empty if the run does not have the scenario.
	Before framework.Verdict `json:"before,omitempty"`
	After  framework.Verdict `json:"after,omitempty"`
	// Reason says why the verdict of the later run is not a pass. If the later run does not have
	// the scenario, it is about the verdict of the earlier run.
	Reason string `json:"reason,omitempty"`
	// Cause is why one of the verdicts is not a pass, in words that other scenarios have too: that of the
	// later run, or if it is a pass, that of the earlier one. Empty if it is not known.
	Cause string `json:"cause,omitempty"`
	// Known is true if the operator of the later run expects the failure.
	Known       bool   `json:"known,omitempty"`
	Requirement string `json:"requirement,omitempty"`
	Rerun       string `json:"rerun,omitempty"`
}

// Compare compares two runs, of two versions or two servers for instance.
func Compare(before, after Report) Diff {
	before, after = before.Ordered(), after.Ordered()
	diff := Diff{
		APIVersion: APIVersion, Kind: DiffKind, Before: before.side(), After: after.side(),
		Changed: []Change{}, New: []Change{}, Gone: []Change{},
		Differences: differences(before.Target, after.Target),
	}
	earlier := map[string]Outcome{}
	for _, outcome := range before.Outcomes {
		earlier[outcome.Name] = outcome
	}
	later := map[string]bool{}
	for _, outcome := range after.Outcomes {
		later[outcome.Name] = true
		change := changeOf(outcome)
		change.After, change.Known = outcome.Verdict, outcome.KnownFailing != ""
		old, both := earlier[outcome.Name]
		change.Before = old.Verdict
		switch {
		case !both:
			diff.New = append(diff.New, change)
		case old.Verdict != outcome.Verdict:
			if outcome.Verdict == framework.Pass {
				_, change.Cause = old.SameCause()
			}
			diff.Changed = append(diff.Changed, change)
		default:
			diff.Unchanged++
		}
	}
	for _, outcome := range before.Outcomes {
		if !later[outcome.Name] {
			change := changeOf(outcome)
			change.Before = outcome.Verdict
			diff.Gone = append(diff.Gone, change)
		}
	}
	return diff
}

func (r Report) side() Side {
	return Side{Target: r.Target, Environment: r.Environment, Summary: r.Summary, Incomplete: r.Incomplete}
}

func changeOf(o Outcome) Change {
	_, cause := o.SameCause()
	return Change{Name: o.Name, Area: o.Area, Level: o.Level, Reason: o.Reason, Cause: cause, Requirement: o.Requirement, Rerun: o.Rerun}
}

// Difference is what only one of two API servers has.
type Difference struct {
	// What says what is compared: "enabled feature gates".
	What string `json:"what"`
	// Before and After are what only the API server of that run has, sorted.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// differences compares two API servers. What one report does not know is not compared.
func differences(before, after TargetInfo) []Difference {
	var all []Difference
	for _, one := range []struct {
		what          string
		before, after []string
		optional      bool // an empty list is known
	}{
		{"enabled feature gates", before.gates(), after.gates(), false},
		{"enabled plugins", before.EnabledPlugins, after.EnabledPlugins, false},
		{"compiled-in plugins", before.Plugins, after.Plugins, true},
		{"served kinds", before.ServedKinds, after.ServedKinds, false},
		{"capabilities", before.Capabilities, after.Capabilities, true},
	} {
		if !one.optional && (len(one.before) == 0 || len(one.after) == 0) {
			continue
		}
		d := Difference{What: one.what, Before: without(one.before, one.after), After: without(one.after, one.before)}
		if len(d.Before)+len(d.After) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// gates returns the feature gates that are on.
func (t TargetInfo) gates() []string {
	var on []string
	for name, enabled := range t.FeatureGates {
		if enabled {
			on = append(on, name)
		}
	}
	return on
}

// without returns the items of a list that another list does not have.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(list)), func(item string) bool { return slices.Contains(other, item) })
}

// Worse reports whether a MUST fails in the later run and did not fail in the earlier run. A
// failure that the operator expects does not count.
func (d Diff) Worse() bool {
	for _, changes := range [][]Change{d.Changed, d.New} {
		for _, change := range changes {
			if change.After == framework.Fail && !change.Known && change.Level != framework.Should && change.Level != framework.May {
				return true
			}
		}
	}
	return false
}

// WriteDiff writes a Diff for people.
func WriteDiff(w io.Writer, d Diff) error {
	p := &printer{out: redact.NewWriter(w)}
	for _, side := range []struct {
		name string
		side Side
	}{{"before", d.Before}, {"after", d.After}} {
		p.line("%s", printable(fmt.Sprintf("%-6s  %s  %s: %s", side.name, side.side.File, side.side.describe(), side.side.Summary)))
		if side.side.Incomplete != "" {
			p.line("        incomplete: %s", indented(printable(side.side.Incomplete), "        "))
		}
	}
	p.differences(d.Differences)
	for _, group := range []struct {
		title   string
		changes []Change
	}{{"changed verdict", d.Changed}, {"new", d.New}, {"gone", d.Gone}} {
		if len(group.changes) == 0 {
			continue
		}
		p.line("")
		p.line("%s (%d)", group.title, len(group.changes))
		for _, change := range group.changes {
			p.change(change)
		}
	}
	p.line("")
	p.line("%d changed verdict, %d new, %d gone, %d unchanged", len(d.Changed), len(d.New), len(d.Gone), d.Unchanged)
	if p.err != nil {
		return fmt.Errorf("write comparison: %w", p.err)
	}
	return nil
}

func (s Side) describe() string {
	text := s.Target.describe()
	if s.Environment != nil && s.Environment.Started != "" {
		text += ", " + s.Environment.Started
	}
	return text
}

// differences writes what differs between the API servers.
func (p *printer) differences(all []Difference) {
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line("differences of the API servers")
	for _, d := range all {
		if len(d.Before) > 0 {
			p.line("  %-21s  only before: %s", d.What, printable(strings.Join(d.Before, ", ")))
		}
		if len(d.After) > 0 {
			p.line("  %-21s  only after:  %s", d.What, printable(strings.Join(d.After, ", ")))
		}
	}
}

// change writes a change, and why the verdict of the later run is not a pass, or that of the earlier one.
func (p *printer) change(c Change) {
	text := c.verdicts() + "  " + c.name()
	if why := cmp.Or(FirstLine(c.Reason), c.Cause); why != "" && c.After != "" {
		text += "\n    " + why
	}
	p.line("  %s", indented(printable(text), "  "))
}

// verdicts returns the verdicts of a Change: "pass -> fail".
func (c Change) verdicts() string {
	if c.Before == "" || c.After == "" {
		return string(c.Before + c.After)
	}
	return fmt.Sprintf("%s -> %s", c.Before, c.After)
}

// name returns the name and level of a Change.
func (c Change) name() string {
	text := fmt.Sprintf("%s  %s", c.Name, c.Level)
	if c.Known {
		text += "  known failure"
	}
	return text
}

// WriteDiffJSON writes a Diff as one indented JSON document.
func WriteDiffJSON(w io.Writer, d Diff) error { return writeDocument(w, d, "comparison") }
