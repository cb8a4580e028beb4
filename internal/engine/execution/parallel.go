package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// inParallel carries out steps at the same time. The expectation of the parallel step is
// judged on the calls of all of them.
func (c *Case) inParallel(ctx context.Context, step scenario.Step) *Failure {
	recording := c.sandbox.Record()
	defer recording.Stop()
	failures := make([]*Failure, len(step.Parallel))
	outer := *c
	outer.answers = &answers{}
	result := framework.Result{Started: time.Now()}
	var group sync.WaitGroup
	for i, inner := range step.Parallel {
		group.Go(func() { failures[i] = outer.innerStep(ctx, inner, fmt.Sprintf("%s.parallel[%d]", c.path, i)) })
	}
	group.Wait()
	result.Finished = time.Now()
	if f := ofParallel(failures); f != nil {
		return f
	}
	result.Status.Code = 200
	recording.Wait(ctx)
	result.Trace = recording.Calls()
	if c.inner {
		result.Trace = nil
	}
	err := recording.Err()
	if other := (*mismatchError)(nil); errors.As(err, &other) {
		return &Failure{action: "parallel", mismatches: other.mismatches, result: result}
	}
	var mismatches []expect.Mismatch
	if err == nil {
		mismatches, err = c.judge(ctx, step.Then, &result)
	}
	if err == nil && len(mismatches) > 0 {
		return c.judged(ctx, Failure{action: "parallel", expect: step.Then, mismatches: mismatches, result: result}, outer.answers.all, "")
	}
	if err != nil {
		return &Failure{action: "parallel", result: result, Err: err}
	}
	return failed("parallel", c.vacuous(ctx, step.Then, schema.GroupVersion{}, result))
}

// ofParallel returns the failure that decides about a parallel step, or nil: the first one
// that says nothing about admission, because it can be the cause of the others (a request
// that was lost, or that another client's policy refused, does not reach a barrier), else the first.
func ofParallel(failures []*Failure) *Failure {
	decides := func(f *Failure) bool {
		return f != nil && (f.NothingAboutAdmission() != "" || errors.As(f.Err, new(*ForeignError)))
	}
	at := slices.IndexFunc(failures, decides)
	if at < 0 {
		at = slices.IndexFunc(failures, func(f *Failure) bool { return f != nil })
	}
	if at < 0 {
		return nil
	}
	failures[at].action = fmt.Sprintf("parallel[%d] %s", at, failures[at].action)
	return failures[at]
}

// answers are the responses to the requests of a step and of the steps in it. Nil discards them.
type answers struct {
	mu  sync.Mutex
	all []framework.Result
}

func (a *answers) add(result framework.Result) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, result)
}
