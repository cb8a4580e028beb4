package contract

import (
	"slices"
	"sync"
)

// Plan is a Subject and the properties that are to be put to it, for those who report
// outcomes one by one: adapters of test frameworks. NewPlan makes one; its methods are
// safe to call from many goroutines.
type Plan struct {
	subject  Subject
	settings *plan
	misuse   []string
	examined func() error
}

// NewPlan selects the properties. It does nothing with the plugin yet, so that it can be
// called while specs are being collected.
func NewPlan(subject Subject, options ...Option) *Plan {
	var report Report
	p := &Plan{subject: subject, settings: compile(options, &report)}
	p.misuse = report.Misuse
	p.examined = sync.OnceValue(func() error {
		var report Report
		broken := examine(p.subject, &report)
		p.misuse = append(p.misuse, report.Misuse...)
		return broken
	})
	return p
}

// Subject returns whom the properties are put to.
func (p *Plan) Subject() Subject { return p.subject }

// Properties returns those selected, in their order.
func (p *Plan) Properties() []Property { return slices.Clone(p.settings.properties) }

// Misuse builds a plugin, the first time, and returns what is wrong with the Subject or
// the options; nothing is fine.
func (p *Plan) Misuse() []string {
	_ = p.examined()
	return slices.Clone(p.misuse)
}

// Judge puts one property to the Subject, and weighs its waiver.
func (p *Plan) Judge(property Property) Outcome {
	return p.settings.judge(property, p.subject, p.examined())
}
