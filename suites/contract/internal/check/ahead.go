package check

import (
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// atOnce is how many rules Ahead checks at the same time. Most of the time they wait for informers of the plugin.
const atOnce = 16

// Ahead begins to check the rules of a Plan, several at the same time. The returned function waits for the outcome of the
// rule with an index, and applies its waiver. It checks a rule again, alone, if other checks may have changed the outcome:
// after a failure, and if time was too short for all requests.
func Ahead(p *Plan) (outcome func(index int) rule.Outcome) {
	if Broken(p) {
		return func(i int) rule.Outcome { return unchecked(p.rules[i].Rule()) }
	}
	var all sync.WaitGroup
	outcomes, done := make([]rule.Outcome, len(p.rules)), make([]chan struct{}, len(p.rules))
	hurried, places := make([]bool, len(p.rules)), make(chan struct{}, atOnce)
	for i, each := range p.rules {
		done[i] = make(chan struct{})
		if each.Exclusive {
			close(done[i])
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			t := NewT(p.subject)
			outcomes[i], hurried[i] = t.Run(each, p.options.Budget), t.Hurried()
			<-places
			close(done[i])
		})
	}
	return func(i int) rule.Outcome {
		<-done[i]
		switch verdict := outcomes[i].Verdict; {
		case verdict == "", verdict == framework.Fail, verdict == framework.Errored, hurried[i]:
			all.Wait()
			alone := p.rules[i]
			alone.Exclusive = true
			outcomes[i] = NewT(p.subject).Run(alone, p.options.Budget)
		}
		return p.options.Apply(suite, outcomes[i])
	}
}
