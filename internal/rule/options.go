package rule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// DefaultBudget is how long the check of one rule may take unless Options say otherwise.
const DefaultBudget = 10 * time.Second

// Options select rules. They name a rule by its ID or by its Name.
type Options struct {
	// Only has the rules to check. Empty means every rule that is not OnRequest.
	Only []string
	// With has rules to check in addition that are OnRequest.
	With []string
	// Waivers has the rules that the Subject may break.
	Waivers []Waiver
	// Budget is how long the check of one rule may take. 0 means DefaultBudget.
	Budget time.Duration
	// Strict turns the verdict Inconclusive into Fail.
	Strict bool
}

// Option changes Options. Each suite has functions that return one.
type Option func(*Options)

// Selected returns the Options that result from all options. A nil Option changes nothing.
func Selected(options []Option) (o Options) {
	for _, option := range options {
		if option != nil {
			option(&o)
		}
	}
	return o
}

// Waive returns an Option that adds a Waiver.
func Waive(w Waiver) Option { return func(o *Options) { o.Waivers = append(o.Waivers, w) } }

// Waiver allows a Subject to break a rule.
type Waiver struct {
	Rule, Why string
	// Until is the last day of the waiver: "2027-01-31". Empty means that the waiver does not end.
	Until string
	// Flaky means that it is no failure if the Subject does not break the rule.
	Flaky bool
}

// Select returns the rules that the options select, in the order of all.
func Select[T any](all []Definition[T], options Options) []Definition[T] {
	var selected []Definition[T]
	for _, each := range all {
		wanted := !each.OnRequest || slices.ContainsFunc(options.With, each.Rule().Is)
		if len(options.Only) > 0 {
			wanted = slices.ContainsFunc(options.Only, each.Rule().Is)
		}
		if wanted {
			selected = append(selected, each)
		}
	}
	return selected
}

// Misuse returns what is wrong with the options, such as unknown rules and waivers without a reason. Suite is the
// name of the package with the options.
func (o Options) Misuse(suite string, all []Rule) []string {
	var misuse, names []string
	for _, rule := range all {
		names = append(names, rule.ID, rule.Name)
	}
	verify := func(option, name string) {
		if !slices.Contains(names, name) {
			misuse = append(misuse, fmt.Sprintf("%s.%s: there is no rule %q%s; %[1]s.Rules lists all rules", suite, option, name, suggest.DidYouMean(name, names)))
		}
	}
	for _, name := range o.Only {
		verify("Only", name)
	}
	for _, name := range o.With {
		verify("With", name)
	}
	for _, waiver := range o.Waivers {
		verify("Waive", waiver.Rule)
		if strings.TrimSpace(waiver.Why) == "" {
			misuse = append(misuse, fmt.Sprintf("%s.Waive: the waiver of %s has no reason: say why it is broken", suite, waiver.Rule))
		}
		if _, err := waiver.end(); err != nil {
			misuse = append(misuse, fmt.Sprintf("%s.WaiveUntil: the waiver of %s: date %q: want the last day, such as 2027-01-31", suite, waiver.Rule, waiver.Until))
		}
	}
	return misuse
}

// end returns when the last day of the waiver is over, or zero if it does not end.
func (w Waiver) end() (time.Time, error) {
	if w.Until == "" {
		return time.Time{}, nil
	}
	last, err := time.Parse(time.DateOnly, w.Until)
	return last.AddDate(0, 0, 1), err
}

// NotBroken is the Reason of a failure whose cause is a waiver.
const NotBroken = "the rule is waived, and not broken: remove the waiver"

// Apply applies Strict and the waivers to an outcome. With a waiver, Fail, Errored and Inconclusive become Skipped, and Pass
// becomes Fail unless the waiver is flaky. A waiver whose last day is over does not change the verdict, but the reason names it.
func (o Options) Apply(suite string, outcome Outcome) Outcome {
	outcome.suite = suite
	if o.Strict && outcome.Verdict == framework.Inconclusive {
		outcome.Verdict, outcome.Reason = framework.Fail, fmt.Sprintf("inconclusive, which %s.Strict does not accept: %s", suite, outcome.Reason)
	}
	for _, waiver := range o.Waivers {
		if !outcome.Rule.Is(waiver.Rule) {
			continue
		}
		outcome.Waiver = waiver.Why
		broken := outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored
		unknown := outcome.Verdict == framework.Inconclusive
		end, err := waiver.end()
		switch {
		case err != nil: // Misuse reports it
			outcome.Waiver = ""
		case (broken || unknown) && !end.IsZero() && time.Now().After(end):
			outcome.waived = ended
			outcome.Reason = fmt.Sprintf("the waiver ended on %s\n%s", waiver.Until, outcome.Reason)
		case unknown:
			outcome.Verdict, outcome.Reason = framework.Skipped, "inconclusive: "+outcome.Reason
		case broken:
			outcome.Verdict = framework.Skipped
		case outcome.Verdict == framework.Pass && !waiver.Flaky:
			outcome.Verdict, outcome.Reason = framework.Fail, NotBroken
		}
	}
	return outcome
}
