package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// DefaultBudget is how long one property may take unless Budget says otherwise.
const DefaultBudget = 10 * time.Second

// Option changes what is run.
type Option func(*plan)

type plan struct {
	only, with []ID
	waivers    []waiver
	budget     time.Duration
	properties []Property
}

type waiver struct {
	id  ID
	why string
}

// Only runs these properties and no others.
func Only(ids ...ID) Option { return func(p *plan) { p.only = append(p.only, ids...) } }

// With runs these properties too, which are of level MAY.
func With(ids ...ID) Option { return func(p *plan) { p.with = append(p.with, ids...) } }

// Waive lets the Subject break a property, for a reason that readers are told. Where
// the property holds after all, the run fails.
func Waive(id ID, why string) Option {
	return func(p *plan) { p.waivers = append(p.waivers, waiver{id, why}) }
}

// Budget is how long one property may take, in place of DefaultBudget.
func Budget(perProperty time.Duration) Option {
	return func(p *plan) { p.budget = perProperty }
}

// Outcome is what came of one Property.
type Outcome struct {
	Property Property
	// Verdict is Pass, Fail, Unsupported (the property does not concern the Subject),
	// Inconclusive (no request reached it) or Skipped (broken, and waived).
	Verdict framework.Verdict
	// Reason is how it was broken, or why there is no verdict.
	Reason string
	// Waiver is the reason of its waiver; empty without one.
	Waiver string
	// Duration is how long it took.
	Duration time.Duration
}

// Report is what came of a Subject.
type Report struct {
	// Subject is its name.
	Subject string
	// Misuse is what is wrong with the Subject or the options, before any property.
	Misuse []string
	// Outcomes has one for each property that was selected, in their order.
	Outcomes []Outcome
}

// Check runs the properties and returns what came of them, for those who report it
// themselves.
func Check(subject Subject, options ...Option) Report {
	plan := NewPlan(subject, options...)
	report := Report{Subject: subject.Name, Misuse: plan.Misuse()}
	for _, property := range plan.Properties() {
		report.Outcomes = append(report.Outcomes, plan.Judge(property))
	}
	return report
}

// Run runs the properties as subtests of t.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	if subject.Name == "" {
		subject.Name = t.Name()
	}
	plan := NewPlan(subject, options...)
	for _, wrong := range plan.Misuse() {
		t.Error(wrong)
	}
	count := map[framework.Verdict]int{}
	for _, property := range plan.Properties() {
		t.Run(string(property.ID), func(t *testing.T) {
			outcome := plan.Judge(property)
			count[outcome.Verdict]++
			switch outcome.Verdict {
			case framework.Pass:
			case framework.Fail:
				t.Error(outcome.Text(subject.Name))
			default:
				t.Skip(outcome.Text(subject.Name))
			}
		})
	}
	t.Log(summary(count))
}

// summary counts verdicts: "40 pass, 1 fail, 4 unsupported, 2 skipped, 1 inconclusive".
func summary(count map[framework.Verdict]int) string {
	var parts []string
	for _, verdict := range framework.Verdicts() {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}

// Text says what came of the property, and of what use it is.
func (o Outcome) Text(subject string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", o.Property.ID, o.Property.Level, o.Property.Title)
	switch {
	case o.Waiver != "" && o.Verdict == framework.Fail:
		fmt.Fprintf(&b, "waived, but it holds for %s: remove the waiver (%q)\n", subject, o.Waiver)
		return b.String()
	case o.Waiver != "" && o.Verdict == framework.Skipped:
		fmt.Fprintf(&b, "waived for %s: %s\n%s\n", subject, o.Waiver, o.Reason)
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s\n", o.Verdict, o.Reason)
	if o.Verdict == framework.Fail {
		fmt.Fprintf(&b, "why it matters: %s\n", o.Property.Why)
		for _, source := range o.Property.Source {
			fmt.Fprintf(&b, "see %s\n", source)
		}
		fmt.Fprintf(&b, "if it is meant: contract.Waive(%q, \"why\")\n", o.Property.ID)
	}
	return b.String()
}

// judge puts one property to the Subject, and weighs its waiver.
func (p *plan) judge(property Property, subject Subject, broken error) Outcome {
	trial := &Trial{Subject: subject, ctx: background(), broken: broken}
	outcome := trial.run(property, p.budget)
	for _, each := range p.waivers {
		if each.id != property.ID {
			continue
		}
		outcome.Waiver = each.why
		switch outcome.Verdict {
		case framework.Fail:
			outcome.Verdict = framework.Skipped
		case framework.Pass:
			outcome.Verdict = framework.Fail
		}
	}
	return outcome
}

// compile makes a plan of options. What is wrong with them is noted, and left out.
func compile(options []Option, report *Report) *plan {
	p := &plan{budget: DefaultBudget}
	for _, option := range options {
		if option != nil {
			option(p)
		}
	}
	all := Properties()
	known := make([]string, 0, len(all))
	for _, property := range all {
		known = append(known, string(property.ID))
	}
	misuse := func(where string, id ID) {
		if slices.Contains(known, string(id)) {
			return
		}
		report.Misuse = append(report.Misuse, fmt.Sprintf("contract.%s: there is no property %q%s; contract.Properties lists all", where, id, suggest.DidYouMean(string(id), known)))
	}
	for _, id := range p.only {
		misuse("Only", id)
	}
	for _, id := range p.with {
		misuse("With", id)
	}
	for _, each := range p.waivers {
		misuse("Waive", each.id)
		if strings.TrimSpace(each.why) == "" {
			report.Misuse = append(report.Misuse, fmt.Sprintf("contract.Waive: the waiver of %s has no reason: say why the plugin breaks it", each.id))
		}
	}
	for _, property := range all {
		selected := property.Level != framework.May || slices.Contains(p.with, property.ID)
		if len(p.only) > 0 {
			selected = slices.Contains(p.only, property.ID)
		}
		if selected {
			p.properties = append(p.properties, property)
		}
	}
	return p
}

// examine looks at a Subject before any property: has it requests, can its plugin be
// built, can its requests be carried out? The error is why no plugin can be had.
func examine(subject Subject, report *Report) error {
	if len(subject.seeds()) == 0 {
		report.Misuse = append(report.Misuse, fmt.Sprintf("contract: the Subject %s has no requests: without Allow and Reject most properties have nothing to look at", subject.Name))
	}
	trial := &Trial{Subject: subject, ctx: background()}
	var broken error
	outcome := trial.run(Property{Check: func(t *Trial) {
		var h *harness.Harness
		if h, broken = t.Build(t.World()); broken != nil {
			return
		}
		for _, request := range t.Seeds() {
			if _, err := h.Attributes(request, framework.Mutating); err != nil {
				t.Errorf("%v", err)
			}
		}
		t.Reached()
	}}, DefaultBudget)
	if broken != nil {
		report.Misuse = append(report.Misuse, fmt.Sprintf("contract: no plugin of the Subject %s can be had: %v", subject.Name, broken))
	} else if outcome.Verdict == framework.Fail {
		report.Misuse = append(report.Misuse, fmt.Sprintf("contract: %s: %s", subject.Name, outcome.Reason))
	}
	return broken
}

// background is the context of trials: they end by their budget.
func background() context.Context { return context.Background() }
