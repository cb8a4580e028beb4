package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/console"
)

// DiffKind is the kind of a Diff.
const DiffKind = "ReportDiff"

// Diff is what differs between two runs. Compare creates one.
type Diff struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Before     Side   `json:"before"`
	After      Side   `json:"after"`
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
	// Known is true if the operator of the later run expects the failure.
	Known       bool   `json:"known,omitempty"`
	Requirement string `json:"requirement,omitempty"`
	Rerun       string `json:"rerun,omitempty"`
}

// Compare compares two runs, of two versions or two servers for instance.
func Compare(before, after Report) Diff {
	before, after = before.ordered(), after.ordered()
	diff := Diff{
		APIVersion: APIVersion, Kind: DiffKind, Before: before.side(), After: after.side(),
		Changed: []Change{}, New: []Change{}, Gone: []Change{},
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
	return Change{Name: o.Name, Area: o.Area, Level: o.Level, Reason: o.Reason, Requirement: o.Requirement, Rerun: o.Rerun}
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
	p := &printer{out: console.NewWriter(w)}
	for _, side := range []struct {
		name string
		side Side
	}{{"before", d.Before}, {"after", d.After}} {
		p.line("%s", printable(fmt.Sprintf("%-6s  %s  %s: %s", side.name, side.side.File, side.side.describe(), side.side.Summary)))
		if side.side.Incomplete != "" {
			p.line("        incomplete: %s", indented(printable(side.side.Incomplete), "        "))
		}
	}
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
			p.line("  %s", indented(printable(change.text()), "  "))
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
	text := s.Target.Kind
	if text == "" {
		text = "unknown target"
	}
	if s.Target.ServerVersion != "" {
		text += ", API server " + s.Target.ServerVersion
	}
	if s.Environment != nil && s.Environment.Started != "" {
		text += ", " + s.Environment.Started
	}
	return text
}

// text returns a Change in one line, with its reason below.
func (c Change) text() string {
	var verdicts []string
	for _, verdict := range []framework.Verdict{c.Before, c.After} {
		if verdict != "" {
			verdicts = append(verdicts, string(verdict))
		}
	}
	text := fmt.Sprintf("%s  %s  %s", strings.Join(verdicts, " -> "), c.Name, c.Level)
	if c.Known {
		text += "  known failure"
	}
	if c.Reason != "" && c.After != "" {
		text += "\n    " + FirstLine(c.Reason)
	}
	return text
}

// WriteDiffJSON writes a Diff as one indented JSON document.
func WriteDiffJSON(w io.Writer, d Diff) error { return writeDocument(w, d, "comparison") }
