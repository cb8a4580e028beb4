package check

import (
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// Rule is one rule for admission plugins, with the function that checks it.
type Rule = rule.Definition[*T]

// T is the check of one rule against one Subject.
type T struct {
	*rule.T
	// Subject is the plugin with its requests.
	Subject Subject
}

// NewT returns a T without a time limit. Run gives it one.
func NewT(subject Subject) *T {
	names := rule.Names{Suite: suite, Subject: "the plugin", Unreached: "no request of the Subject reaches the code that this rule is about: add a request that does"}
	for _, request := range subject.Requests() {
		names.Requests = append(names.Requests, request.String())
	}
	return &T{T: rule.NewT(names), Subject: subject}
}

// Requests returns all requests of the Subject: first those that it admits.
func (t *T) Requests() []framework.Request { return t.Subject.Requests() }

// Run runs the Check of a rule and the cleanups, and returns the outcome: see rule.T.
func (t *T) Run(definition Rule, budget time.Duration) rule.Outcome {
	return t.T.Run(definition.Rule(), definition.Exclusive, budget, func() { definition.Check(t) })
}
